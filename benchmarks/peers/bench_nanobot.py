"""nanobot-ai: what its runner does to the messages before each model call.

`ContextGovernor.prepare_request` is what the runner calls (`AgentRunner._request_model`): `prepare_for_model`, a copy
with neighbouring user messages merged, an estimate of the whole list by tiktoken, `fit_to_budget` when that is over,
and a copy to compare with next time. Measured as for a provider without a conversation state of its own (with one,
nanobot estimates only what is new), and without the summary that a model would write when the window is full: the
list is fitted instead, as nanobot does where no summary is configured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from loguru import logger
from nanobot.agent.context_governance import ContextGovernanceConfig, ContextGovernor, ModelRequestState
from nanobot.agent.tools.registry import ToolRegistry
from nanobot.providers.conversation_state import ProviderConversationStateController
from nanobot.utils.helpers import estimate_prompt_tokens_chain
from timing import MAX_OUTPUT, Bench

logger.remove()  # its log lines are not what is measured
LONGEST_RESULT = 16_000  # characters, nanobot's default


def run_now(coroutine: Any) -> Any:
    """The result of a coroutine that never waits, without an event loop's share."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("prepare_request waited for something")


def measure(bench: Bench, window: int) -> None:
    found = bench.found
    tools: list[dict[str, Any]] = found["tools"]
    provider: Any = object()  # one without a token counter of its own
    governor = ContextGovernor()
    config = ContextGovernanceConfig(
        provider=provider,
        model="model",
        tools=ToolRegistry(),
        workspace=None,
        session_key="bench",
        max_tool_result_chars=LONGEST_RESULT,
        context_window_tokens=window,
        max_tokens=MAX_OUTPUT,
    )
    system = {"role": "system", "content": found["system"]}

    def growing() -> Iterator[list[dict[str, Any]]]:
        """The history, longer by a reply and its result at each call."""
        messages = [system, *found["messages"]]
        for reply, result in found["later"]:
            messages += [reply, result]
            yield messages

    conversation = ProviderConversationStateController(provider=provider, model="model", messages=[])
    state = ModelRequestState(config=config, conversation=conversation)

    def whole_path(messages: list[dict[str, Any]]) -> int:
        call = governor.prepare_request(state, messages, tool_definitions=tools, transcript=messages)
        return len(run_now(call)[0])

    def repairs(messages: list[dict[str, Any]]) -> int:
        return len(governor.prepare_for_model(config, messages))

    for case, path in (("prepare_request (whole path)", whole_path), ("prepare_for_model alone", repairs)):
        histories = growing()
        bench.measure(case, window, lambda histories=histories: next(histories), path)


def main() -> None:
    _, source = estimate_prompt_tokens_chain(object(), "model", [{"role": "user", "content": "a b"}])
    if source != "tiktoken":
        sys.exit(f"nanobot counts by {source!r}, not with tiktoken: is TIKTOKEN_CACHE_DIR filled?")
    bench = Bench("nanobot", ["nanobot-ai", "tiktoken"])
    for window in bench.windows:
        measure(bench, window)
    bench.close()


if __name__ == "__main__":
    main()

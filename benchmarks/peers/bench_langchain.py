"""langchain: `trim_messages`, which its documentation has people call before each model call.

Three counters: tiktoken as the documentation shows it (every text anew), the approximate one (a quarter of the
characters), and tiktoken with each message's count remembered, which langchain does not bring but a caller can write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import tiktoken
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, convert_to_messages, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from timing import MARGIN, MAX_OUTPUT, Bench

FRAME = 4  # tokens around a message


class TokenCounter:
    """Counts with o200k_base. With `remembers`, no message twice."""

    def __init__(self, remembers: bool) -> None:
        self._encoding = tiktoken.get_encoding("o200k_base")
        self._known: dict[int, tuple[BaseMessage, int]] | None = {} if remembers else None

    def count(self, messages: Sequence[BaseMessage]) -> int:
        known = self._known
        if known is None:
            return sum(self._count(message) for message in messages)
        total = 0
        for message in messages:
            if (entry := known.get(id(message))) is None:
                entry = known[id(message)] = (message, self._count(message))  # held, so that its id stays its own
            total += entry[1]
        return total

    def _count(self, message: BaseMessage) -> int:
        text = str(message.content)
        if isinstance(message, AIMessage) and message.tool_calls:
            text += json.dumps(message.tool_calls)
        return FRAME + len(self._encoding.encode_ordinary(text))


def measure(bench: Bench, window: int) -> None:
    found = bench.found
    history = [SystemMessage(found["system"]), *convert_to_messages(found["messages"])]
    later = [convert_to_messages(pair) for pair in found["later"]]

    def growing() -> Iterator[list[BaseMessage]]:
        messages = list(history)
        for pair in later:
            messages += pair
            yield messages

    counters: dict[str, Any] = {
        "trim_messages, tiktoken": TokenCounter(remembers=False).count,
        "trim_messages, approximate": count_tokens_approximately,
        "trim_messages, tiktoken remembered by the caller": TokenCounter(remembers=True).count,
    }
    for case, counter in counters.items():
        histories = growing()
        if "remembered" in case:
            counter(history)

        def trim(messages: list[BaseMessage], counter: Any = counter) -> int:
            kept = trim_messages(
                messages,
                max_tokens=window - MAX_OUTPUT - MARGIN,
                token_counter=counter,
                strategy="last",
                start_on="human",
                include_system=True,
            )
            return len(kept)

        bench.measure(case, window, lambda histories=histories: next(histories), trim)


def main() -> None:
    bench = Bench("langchain", ["langchain", "langchain-core", "tiktoken"])
    for window in bench.windows:
        measure(bench, window)
    bench.close()


if __name__ == "__main__":
    main()

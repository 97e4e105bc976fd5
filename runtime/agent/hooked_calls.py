"""What hooks take part in around the calls of a reply: before the intents are recorded, and before a result is.

Laws: a call runs with what its intent says; a result that a hook had not looked at when the turn was stopped is not
recorded as if it had.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from governors.messages import Text, ToolCall

from ..errors import ToolError
from ..hooks.contract import Hook, Refused, ToolDone, ToolUse, output_of
from ..hooks.running import Hooks
from ..session.entries import CallReference
from ..tools.arguments import parse_arguments
from ..tools.base import ToolOutput
from ..tools.toolset import Toolset

UNSEEN = (
    "The tool finished, but the turn was stopped before a hook had looked at its result, which is therefore not shown. "
    "It has taken effect."
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A call as it is to be run: `call` with the arguments that count. `hook` changed them or, with `answer`, answers
    in the tool's place."""

    call: ToolCall
    hook: str | None = None
    answer: ToolOutput | None = None


async def plan_call(hooks: Hooks | None, toolset: Toolset, reference: CallReference, call: ToolCall) -> Planned:
    """Ask the hooks what becomes of a call; the first that answers or refuses has the last word."""
    planned = Planned(call)
    for hook in hooks.at("before_tool") if hooks is not None else ():
        assert hooks is not None
        try:
            arguments = parse_arguments(planned.call.arguments)
        except ToolError:
            return planned  # the tool will say what is wrong with them
        said = await hooks.ask(hook, "before_tool", ToolUse(call.name, copy.deepcopy(arguments), reference))
        if said is None:
            continue
        if isinstance(said, Refused):
            reason = f"Refused by the hook {hook.name}, and nothing was done: {said.reason}"
            return replace(planned, hook=hook.name, answer=toolset.finished(ToolOutput((Text(reason),), is_error=True)))
        output = output_of(said)
        if output is not None:
            return replace(planned, hook=hook.name, answer=toolset.finished(output))
        text = _as_arguments(said)
        if text is None:
            hooks.refuse(hook, "before_tool", "a mapping, a text, a ToolOutput or Refused is wanted")
        elif json.loads(text) != arguments:
            planned = Planned(replace(planned.call, arguments=text), hook.name)
    return planned


async def look_at_result(
    hooks: Hooks | None, toolset: Toolset, reference: CallReference, call: ToolCall, output: ToolOutput
) -> ToolOutput:
    """The result as the hooks leave it."""
    for hook in hooks.at("after_tool") if hooks is not None else ():
        assert hooks is not None
        output = await _looked_at(hooks, hook, toolset, ToolDone(call.name, _read(call), reference, output))
    return output


async def _looked_at(hooks: Hooks, hook: Hook, toolset: Toolset, done: ToolDone) -> ToolOutput:
    said = await hooks.ask(hook, "after_tool", done)
    if said is None:
        return done.output
    output = output_of(said)
    if output is None:
        hooks.refuse(hook, "after_tool", "a text or a ToolOutput is wanted")
        return done.output
    if isinstance(said, str):  # other words, for the same outcome
        output = replace(output, is_error=done.output.is_error)
    return toolset.finished(output)


def _read(call: ToolCall) -> Mapping[str, object]:
    try:
        return parse_arguments(call.arguments)
    except ToolError:
        return MappingProxyType({})


def _as_arguments(said: object) -> str | None:
    """Arguments as JSON text; None for what is no JSON object."""
    if not isinstance(said, Mapping):
        return None
    try:
        text = json.dumps(dict(said), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError):
        return None
    return text

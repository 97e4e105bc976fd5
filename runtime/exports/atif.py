"""A session as an ATIF trajectory (Agent Trajectory Interchange Format, 1.8), for tools that score or train on agents.

The package `atif` (extra `moonwake[atif]`) has the format's models, and validates what is written. A trajectory is one
line of steps: it holds one branch. Laws: one step a message, a reply with the results of its calls; heads, edits and
summaries are `system` steps, so that a reader knows that the model's context changed there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from governors.messages import Document, Image, Text, Thinking, ToolSpec, Usage, UserPart

from ..errors import MoonwakeError
from ..session.entries import Entry, Header, HeadRecord, SystemRecord
from ..session.tree import Tree
from ..session.view.projection import system_state
from ..version import __version__
from .marks import medium
from .segments import tip_of, transcript
from .transcript import Answer, Called, Item, Mark, Said, Transcript
from .veil import veiled
from .wording import plural

SCHEMA = "ATIF-v1.8"
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MARKS = ("head", "compaction", "edit", "summary", "system", "problem", "extension")

Object = dict[str, Any]


def to_atif(header: Header, entries: Sequence[Entry], *, entry: int | None = None) -> Object:
    """The trajectory of the branch that ends in `entry` (by default the current one), as JSON-ready values.

    Raises `MoonwakeError` when the package `atif` is not installed, `SessionError` for an entry that there is none of.
    """
    try:
        from atif import Trajectory
    except ImportError as error:
        raise MoonwakeError("exporting to ATIF needs the package atif: pip install 'moonwake[atif]'") from error
    shown = transcript(header, entries, entry=entry, branch=True)
    others = len(transcript(header, entries).branches) - 1 if entry is None else 0
    tree = Tree(veiled(entries))
    branch = tree.branch_to(tip_of(tree, entry))
    written: Object = Trajectory.model_validate(_trajectory(shown, branch, others)).to_json_dict()
    return written


def _trajectory(shown: Transcript, branch: Sequence[Entry], others: int) -> Object:
    header = shown.header
    steps = _Steps(_copied(header)).of(shown, branch)
    state = system_state(branch)
    agent: Object = {"name": "moonwake", "version": __version__, "extra": {"agent": header.agent}}
    if shown.models:
        agent["model_name"] = shown.models[-1]
    if state is not None and state.offered:
        agent["tool_definitions"] = [_definition(tool) for tool in state.offered]
    notes = [f"{plural(others, 'other branch', 'other branches')} of the session left out"] if others else []
    notes += [f"{plural(shown.redacted, 'entry', 'entries')} redacted"] if shown.redacted else []
    extra = {"created": header.created, "channel": header.channel, "origin": header.origin, "tags": shown.tags}
    found: Object = {
        "schema_version": SCHEMA,
        "session_id": header.id,
        "agent": agent,
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": shown.usage.prompt,
            "total_completion_tokens": shown.usage.output,
            "total_cached_tokens": shown.usage.cache_read,
            "total_cost_usd": shown.cost,
            "total_steps": len(steps),
            "extra": {"of": "the whole session, with all branches and failed calls"},
        },
        "extra": {"moonwake": {name: value for name, value in extra.items() if value}},
    }
    return {**found, "notes": "; ".join(notes)} if notes else found


def _copied(header: Header) -> int:
    """The last entry that a fork took from its origin."""
    origin = header.origin or {}
    entry = origin.get("entry")
    return entry if origin.get("kind") == "fork" and isinstance(entry, int) else 0


class _Steps:
    def __init__(self, copied: int) -> None:
        self._copied = copied
        self._steps: list[Object] = []

    def of(self, shown: Transcript, branch: Sequence[Entry]) -> list[Object]:
        baseline = next((entry for entry in branch if isinstance(entry.record, (SystemRecord, HeadRecord))), None)
        state = None if baseline is None else system_state([baseline])
        if baseline is not None and state is not None and state.text:
            self._add("system", baseline, {"message": state.text})
        for segment in shown.shown:
            for item in segment.items:
                if not (isinstance(item, Mark) and item.kind == "system" and baseline and item.entry == baseline.id):
                    self._take(item)
        return self._steps

    def _take(self, item: Item) -> None:
        match item:
            case Said(who="user"):
                self._add("user", item, {"message": _message(item.content)})
            case Said():
                self._add("agent", item, self._reply(item))
            case Answer():
                self._add("system", item, {"message": "", "observation": {"results": [_result(item, None)]}})
            case Mark(kind=kind, title=title, text=text) if kind in _MARKS:
                message = f"[{title}]" + (f"\n\n{text}" if text else "")
                self._add("system", item, {"message": message, "extra": {"moonwake": {"kind": kind}}})
            case _:
                pass

    def _add(self, source: str, item: Item | Entry, said: Object) -> None:
        entry = item.id if isinstance(item, Entry) else item.entry
        extra = {"entry": entry, **said.pop("extra", {}).get("moonwake", {})}
        step: Object = {"step_id": len(self._steps) + 1, "source": source, **said, "extra": {"moonwake": extra}}
        if _is_time(item.at):
            step["timestamp"] = item.at
        if entry <= self._copied:
            step["is_copied_context"] = True
        self._steps.append(step)

    def _reply(self, said: Said) -> Object:
        found: Object = {"message": said.text, "llm_call_count": 1, "extra": {"moonwake": {"stop": said.stop}}}
        if said.model:
            found["model_name"] = said.model
        thinking = "\n\n".join(part.text for part in said.content if isinstance(part, Thinking) and part.text)
        if thinking:
            found["reasoning_content"] = thinking
        if said.usage is not None:
            found["metrics"] = _metrics(said.usage, said.cost)
        calls = [(self._id(said.entry, number), call) for number, call in enumerate(said.calls)]
        if calls:
            found["tool_calls"] = [_call(name, call) for name, call in calls]
        results = [_result(call.answer, name) for name, call in calls if call.answer is not None]
        if results:
            found["observation"] = {"results": results}
        return found

    def _id(self, entry: int, number: int) -> str:
        """Ids of providers repeat within a session; entry and place do not."""
        return f"call_{entry}_{number}"


def _message(content: Sequence[UserPart | Thinking]) -> str | list[Object]:
    if not any(isinstance(part, Image | Document) for part in content):
        return "\n\n".join(part.text for part in content if isinstance(part, Text))
    return list(_parts(content))


def _parts(content: Sequence[UserPart | Thinking]) -> Iterator[Object]:
    for part in content:
        match part:
            case Text(text):
                yield {"type": "text", "text": text}
            case Image(media_type=media_type, data=data) if media_type in _PICTURES:
                source = {"media_type": media_type, "path": f"data:{media_type};base64,{data}"}
                yield {"type": "image", "source": source}
            case Image() | Document():
                yield {"type": "text", "text": medium(part)}
            case _:
                pass


def _call(name: str, call: Called) -> Object:
    found: Object = {"tool_call_id": name, "function_name": call.tool, "arguments": {}}
    try:
        parsed = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        parsed = None
    extra: Object = {} if call.complete else {"complete": False}
    if isinstance(parsed, dict):
        found["arguments"] = parsed
    else:
        extra["raw_arguments"] = call.arguments
    return {**found, "extra": extra} if extra else found


def _result(answer: Answer, name: str | None) -> Object:
    extra: Object = {"entry": answer.entry, "is_error": answer.is_error, "seconds": answer.seconds}
    if isinstance(answer.whole, str):
        extra["whole"] = answer.whole
    told = {key: value for key, value in extra.items() if value not in (None, False)}
    found: Object = {"content": _message(answer.content), "extra": told}
    return {**found, "source_call_id": name} if name is not None else {**found, "extra": {**told, "tool": answer.tool}}


def _metrics(usage: Usage, cost: float | None) -> Object:
    extra = {
        "reasoning_tokens": usage.reasoning,
        "cache_write_5m_tokens": usage.cache_write_5m,
        "cache_write_1h_tokens": usage.cache_write_1h,
    }
    found: Object = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
    }
    if cost is not None:
        found["cost_usd"] = cost
    told = {name: value for name, value in extra.items() if value}
    return {**found, "extra": told} if told else found


def _definition(tool: ToolSpec) -> Object:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _is_time(at: str) -> bool:
    try:
        datetime.fromisoformat(at)
    except ValueError:
        return False
    return True

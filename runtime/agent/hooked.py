"""What hooks take part in around a model call: the prompt of a turn, the messages, the body of a request.

Laws: the log has it first. A prompt becomes a `system` entry, changed messages become `edit` and `extension` entries,
and what was changed of a body stands in the `request` entry; so every request can be made again without the hook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import orjson

from governors.messages import (
    AssistantMessage,
    Message,
    Messages,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from governors.wire import WIRES
from governors.wire.base import Payload
from governors.wire.encoded import dump_bytes, roll

from ..hooks.contract import TurnPrompt, is_content
from ..hooks.differences import Differences, differences
from ..hooks.payload import changed, changes_between
from ..hooks.running import Hooks
from ..prompt.fence import fence
from ..providers.base import ChosenModel, ModelInfo
from ..sections import Section, Sections, tagged
from ..session.entries import EditRecord, Entry, MessageRecord, PayloadChange, RequestRecord
from ..session.session import Session
from ..session.view.standing import Standing
from .decided import without_thinking
from .drafts import Drafts
from .ease import at_ease
from .prepare import Prepared, hooks_in

#: What each hook wants of the sections of this turn.
Overrides = tuple[tuple[str, Mapping[str, str | None]], ...]


async def overrides_for(hooks: Hooks, said: str, sections: Sections) -> Overrides:
    """What the hooks want of the prompt of a turn that was opened by the words `said`."""
    found: list[tuple[str, Mapping[str, str | None]]] = []
    for hook in hooks.at("before_turn"):
        shown = overridden(sections, found)
        texts = MappingProxyType({section.name: section.text for section in shown})
        wanted = await hooks.ask(hook, "before_turn", TurnPrompt(said, texts))
        if wanted is None or wanted == texts:
            continue
        if isinstance(wanted, str):
            wanted = {f"hook:{hook.name}": wanted}
        if _are_sections(wanted):
            found.append((hook.name, MappingProxyType(dict(wanted))))
        else:
            hooks.refuse(hook, "before_turn", "a text or a mapping from names of sections to texts is wanted")
    return tuple(found)


class Shaping:
    """The prompt of one agent's turns, as its hooks want it. What they want holds for the turn; the first request after
    it is told what reads as before again."""

    def __init__(self, hooks: Hooks, session: Session) -> None:
        self._hooks, self._session = hooks, session
        self._overrides: Overrides | None = ()
        self._before: Overrides = ()

    def begin(self, opening: int) -> None:
        """A turn begins with the entry `opening`."""
        self._hooks.turn = opening
        self._before, self._overrides = self._overrides or (), None

    async def shape(self, sections: Sections) -> tuple[Sections, str | None]:
        """The sections of this turn, and the hooks that shape them or shaped those of the turn before."""
        if self._overrides is None:
            found = self._session.tree.get(self._hooks.turn or 0)
            said = _words(found.record) if found is not None else ""
            self._overrides = await overrides_for(self._hooks, said, sections)
        names = dict.fromkeys(f"hook:{name}" for name, _ in (*self._before, *self._overrides))
        return overridden(sections, self._overrides), ", ".join(names) or None


def _words(record: object) -> str:
    content = record.content if isinstance(record, MessageRecord) else ()
    return "\n\n".join(part.text for part in content if isinstance(part, Text))


def overridden(sections: Sections, overrides: Iterable[tuple[str, Mapping[str, str | None]]]) -> Sections:
    """`sections` as the hooks want them. What is new comes last."""
    for _, wanted in overrides:
        old = {section.name: section.text for section in sections}
        tags = any(text.startswith("<section ") for text in old.values())
        texts = {
            name: None if text is None else _as_section(name, text, old.get(name), tags)
            for name, text in wanted.items()
        }
        kept = {name: texts.get(name, text) for name, text in old.items()}
        new = {name: text for name, text in texts.items() if name not in old}
        sections = tuple(Section(name, text) for name, text in {**kept, **new}.items() if text is not None)
    return sections


def _as_section(name: str, text: str, old: str | None, tags: bool) -> str:
    """The final text of a section: fenced, and with its tag where the section has one."""
    begin, end = tagged(Section(name, "\0")).text.split("\0")
    if text.startswith(begin) and text.endswith(end):
        text = text[len(begin) : -len(end)]
    has_tag = tags if old is None else old.startswith(begin)
    return tagged(Section(name, fence(text))).text if has_tag else fence(text)


def _are_sections(wanted: object) -> bool:
    if not isinstance(wanted, Mapping):
        return False
    return all(
        isinstance(name, str)
        and fence(name) == name != ""
        and '"' not in name
        and (text is None or isinstance(text, str))
        for name, text in wanted.items()
    )


async def transform_context(
    hooks: Hooks, session: Session, drafts: Drafts, standing: Callable[[], Standing], model: ChosenModel
) -> bool:
    """Let the hooks change the messages, and record it. Whether something that was sent before may have changed."""
    moved = False
    for hook in hooks.at("transform_context"):
        branch, redacted = tuple(session.branch()), standing().redacted
        given = await at_ease(drafts.pending(branch, redacted), lambda: drafts.project(branch, redacted).messages)  # noqa: B023 - it is done before the next round
        wanted = await hooks.ask(hook, "transform_context", tuple(map(_copy, given)))
        if wanted is None:
            continue
        if not isinstance(wanted, Sequence) or not all(map(_is_sound, wanted)):
            hooks.refuse(hook, "transform_context", "a list or tuple of whole messages is wanted")
            continue
        found = await at_ease(len(branch), lambda: differences(hook.name, given, wanted, branch, redacted))  # noqa: B023 - the same
        for why in found.refused:
            hooks.refuse(hook, "transform_context", why)
        if found.records:
            await session.append(*found.records, *_unbound(found, given, branch, model.info))
            moved = moved or found.first is not None
    return moved


def _unbound(found: Differences, given: Messages, branch: Sequence[Entry], info: ModelInfo) -> Iterable[EditRecord]:
    """Edits that leave out the reasoning which was bound to what changes, where the model would refuse it."""
    if found.first is None or not info.abilities.binds_prefix or info.abilities.drop_block:
        return ()
    replaced = {record.target for record in found.records if isinstance(record, EditRecord) and record.block is None}
    later = (message for message in given[found.first :] if message.origin not in replaced)
    return [edit for message in later for edit in without_thinking(message, branch)]


def _copy(message: Message) -> Message:
    if isinstance(message, SystemPatch):
        return replace(message)
    return replace(message, content=tuple(replace(part) for part in message.content))  # type: ignore[arg-type] # the same kinds of parts


def _is_sound(message: object) -> bool:
    match message:
        case SystemPatch():
            return True
        case AssistantMessage(content=content):
            parts: object = content
            return isinstance(parts, tuple) and all(map(_is_said, parts))
        case UserMessage(content=content) | ToolResult(content=content):
            return is_content(content)
        case _:
            return False


def _is_said(part: object) -> bool:
    words: tuple[object, ...]
    match part:
        case Text(text) | Thinking(text):
            words = (text,)
        case ToolCall():
            words = (part.id, part.name, part.arguments)
        case _:
            return False
    return all(isinstance(word, str) for word in words)


@dataclass(frozen=True, slots=True)
class Shaped:
    """The body that leaves, its record, why its prefix moved, and how many tokens it may have gained."""

    body: Payload
    record: RequestRecord
    cause: str | None
    grown: int = 0


async def shape_body(
    hooks: Hooks,
    info: ModelInfo,
    prepared: Prepared,
    record: RequestRecord,
    body: Payload,
    measure: Callable[[str], int],
) -> Shaped:
    """Let the hooks change the body of a request. `measure` gives the tokens of a text, as the model counts."""
    changes: list[PayloadChange] = []
    extra = grown_most = 0
    for hook in hooks.at("before_request"):
        plain = orjson.loads(orjson.dumps(changed(body, changes)))
        wanted = _as_json(await hooks.ask(hook, "before_request", orjson.loads(orjson.dumps(plain))), plain)
        if wanted is None:
            hooks.refuse(hook, "before_request", "a JSON object is wanted")
            continue
        made = changes_between(hook.name, plain, wanted)
        grown = _growth(made, plain, wanted, measure)
        why = _unusable(made, changed(plain, made), info, record, extra + grown) if made else None
        if why is not None:
            hooks.refuse(hook, "before_request", why)
        elif made:
            changes += made
            extra += grown
            grown_most += _added(made, measure)
    if not changes:
        return Shaped(body, record, prepared.cause)
    sent = changed(body, changes)
    digests = [digest.hex() for digest in roll(b"", WIRES[info.wire].prefix_blocks(sent))]
    shaped = replace(
        record,
        prefix=digests[-1] if digests else "",
        blocks=len(digests),
        forecast=record.forecast + extra,
        changes=tuple(changes),
    )
    return Shaped(sent, shaped, _cause(prepared, changes, digests), grown_most)


def _as_json(wanted: object, plain: Payload) -> Payload | None:
    """What a hook gave back as a JSON object; None when it is none."""
    if wanted is None:
        return plain
    try:
        read = orjson.loads(orjson.dumps(wanted))
    except (TypeError, ValueError):
        return None
    return read if isinstance(read, dict) else None


def _growth(made: Sequence[PayloadChange], plain: Payload, wanted: Payload, measure: Callable[[str], int]) -> int:
    """The tokens that a body may have more than before, at most."""
    if len(dump_bytes(wanted)) <= len(dump_bytes(plain)):
        return 0
    return _added(made, measure)


def _added(made: Sequence[PayloadChange], measure: Callable[[str], int]) -> int:
    """The tokens of all that was put in, whatever it took the place of."""
    return sum(measure(dump_bytes(change.value).decode()) for change in made if change.op != "remove")


def _unusable(
    made: Sequence[PayloadChange], wanted: Payload, info: ModelInfo, record: RequestRecord, extra: int
) -> str | None:
    """Why a body cannot be sent; None when it can."""
    if any(change.path == "/model" for change in made):
        return "another model is chosen with /model, not in the body of a request"
    violations = [each for each in WIRES[info.wire].check(wanted, info.abilities) if each.severity != "$"]
    if violations:
        return f"the request would break the rules of {info.wire}: {'; '.join(map(str, violations[:3]))}"
    if record.forecast + extra > record.budget:
        return f"the request would be over its budget, {record.forecast + extra:,} of {record.budget:,} tokens"
    return None


def _cause(prepared: Prepared, changes: Sequence[PayloadChange], digests: Sequence[str]) -> str | None:
    """Why the request with `changes` does not extend the previous one; None when it does, or is the first."""
    previous = prepared.previous
    if previous is None:
        return None
    if len(digests) >= previous.blocks and (not previous.blocks or digests[previous.blocks - 1] == previous.prefix):
        return None
    return hooks_in(changes) if prepared.cause in (None, "unexplained", "reasoning") else prepared.cause

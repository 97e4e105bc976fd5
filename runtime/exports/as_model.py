"""What a model saw: the request of a `request` entry made again from the entries before it, or what one would show.

Pure. Laws:
- For a request whose model is known as it was then, the bytes are those that were sent; the prefix hash of the log
  proves it (`same`). Where it does not agree, `why` says what may have changed.
- The proof is made with what was sent; what is shown has nothing redacted in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from governors.messages import Messages, Text, ToolSpec
from governors.wire import WIRES
from governors.wire.base import LIFETIMES, Payload
from governors.wire.encoded import dump_bytes
from governors.wire.encoder import Encoder

from ..agent.folding import as_told
from ..agent.renewing import WARMING, least_answer, renewed_by
from ..errors import SessionError
from ..hooks.payload import changed
from ..providers.base import ModelInfo
from ..session.entries import Entry, MessageRecord, RequestRecord, SettingRecord
from ..session.tree import Tree
from ..session.view.projection import Projection, project
from ..session.view.redaction import redacted_entries
from ..session.view.sections import front
from .segments import tip_of
from .veil import hidden_entries, veiled


@dataclass(frozen=True, slots=True)
class Seen:
    """What a model was shown, or would be, at `entry`.

    `request` is the record of a request entry, None for any other. `body` is what goes over the wire, with cache marks;
    None where no model is known. `same`: whether its prefix has the hash that the log recorded; None: there is none to
    compare with. `why` says why not, or what stands in the way. `data` are the bytes of `body`: those that were
    sent, if nothing of it was redacted since.
    """

    entry: int
    model: ModelInfo | None
    request: RequestRecord | None
    system: str
    tools: tuple[ToolSpec, ...]
    messages: Messages
    body: Payload | None
    data: bytes | None
    prefix: str | None
    same: bool | None
    why: str = ""


def as_model(entries: Sequence[Entry], entry: int, model: ModelInfo | None = None, thinking: str | None = None) -> Seen:
    """What was seen at the entry `entry` of a session with `entries` (all of them).

    `model` is the model of that request as it is known (`request_at` tells which); its window and output limit shape
    the body beside the messages. `thinking` is the level that holds where the session sets none. Raises `SessionError`
    for an entry that there is none of.
    """
    tree = Tree(entries)
    tip_of(tree, entry)
    found = tree.get(entry)
    assert found is not None
    request = found.record if isinstance(found.record, RequestRecord) else None
    place, until = entry, found.parent if request is not None else entry
    if request is not None and request.purpose == WARMING:
        repeated = renewed_by(tree.branch_to(found.parent))
        place, until = (entry, until) if repeated is None else (repeated.id, repeated.parent)
    before = [each for each in entries if each.id < place or (request is None and each.id == entry)]
    hidden = hidden_entries(entries)
    told = redacted_entries(before)
    sent = project(_asking(tree.branch_to(until), found), told)
    if hidden:
        bare = Tree(veiled(entries))
        shown = project(_asking(bare.branch_to(until), bare.get(entry)), hidden)
    else:
        shown = sent
    if model is None:
        return _without_model(entry, request, shown)
    model = as_told(model, sent.settings)
    ttl = LIFETIMES.get(request.lifetime) if request is not None else None
    limit = _max_output(before, model)
    made = _made(_encoder(sent, model, limit, thinking), request, ttl)
    if request is not None and made.prefix != request.prefix:
        model, made = _nearest(sent, model, limit, thinking, request, made, ttl)
    display = made if shown is sent else _made(_encoder(shown, model, limit, thinking), None, ttl)
    same = None if request is None else made.prefix == request.prefix
    system, tools = _front(shown, model)
    body, data = display.body, display.data
    if place != entry:
        body = least_answer(body)
        data = dump_bytes(body)
    return Seen(
        entry=entry,
        model=model,
        request=request,
        system=system,
        tools=tools,
        messages=shown.messages,
        body=body,
        data=data,
        prefix=made.prefix,
        same=same,
        why="" if request is None else _why(request, same, shown.messages != sent.messages),
    )


def request_at(entries: Sequence[Entry], entry: int) -> RequestRecord | None:
    """The request that tells which model the entry `entry` is about: itself, else the newest before it on its branch,
    else the first after it. None when nothing was ever asked."""
    tree = Tree(entries)
    tip_of(tree, entry)
    for each in reversed(tree.branch_to(entry)):
        if isinstance(each.record, RequestRecord):
            return each.record
    return next((each.record for each in entries if isinstance(each.record, RequestRecord)), None)


def _asking(branch: Sequence[Entry], entry: Entry | None) -> Sequence[Entry]:
    """`branch`, with what the request `entry` asked at its end, if it asked beside the conversation."""
    if entry is None or not isinstance(entry.record, RequestRecord) or entry.record.asked is None:
        return branch
    asked = MessageRecord(role="user", content=(Text(entry.record.asked),))
    return (*branch, Entry(entry.id, branch[-1].id if branch else None, entry.at, asked))


def _without_model(entry: int, request: RequestRecord | None, shown: Projection) -> Seen:
    why = "" if request is None else "the model is not known here, so its bytes cannot be made again"
    return Seen(entry, None, request, shown.baseline.text, shown.tools, shown.messages, None, None, None, None, why)


def _encoder(shown: Projection, model: ModelInfo, max_output: int, thinking: str | None) -> Encoder:
    wire = WIRES.get(model.wire)
    if wire is None:
        raise SessionError(f"the wire {model.wire!r} of this request is not known to this version")
    system, tools = _front(shown, model)
    encoder = Encoder(
        wire,
        system=system,
        tools=tools,
        abilities=model.abilities,
        model=model.id,
        max_output=max_output,
        thinking=shown.settings.get("thinking", thinking),
    )
    encoder.append(shown.messages)
    return encoder


def _front(shown: Projection, model: ModelInfo) -> tuple[str, tuple[ToolSpec, ...]]:
    """The system prompt and the tools that lead a request to `model`."""
    wire, able = WIRES.get(model.wire), model.abilities
    inline = wire is not None and wire.inline_tools(able)
    system, tools = front(shown.baseline, shown.state, inline=inline, folds=able.folds_patches)
    return system, tools if able.tools else ()


@dataclass(frozen=True, slots=True)
class _Made:
    """A body, its bytes, and the hash of its prefix."""

    body: Payload
    data: bytes
    prefix: str


def _made(encoder: Encoder, request: RequestRecord | None, ttl: str | None) -> _Made:
    """The body that `encoder` gives, with what hooks changed of it for `request`."""
    if request is None or not request.changes:
        return _Made(encoder.body(ttl), encoder.to_bytes(ttl), encoder.prefix)
    try:
        body = changed(encoder.body(ttl), request.changes)
    except ValueError:  # they were made of another body: the hash will say that it is not the one
        body = encoder.body(ttl)
    return _Made(body, dump_bytes(body), WIRES[request.wire].prefix_hash(body))


def _max_output(before: Sequence[Entry], model: ModelInfo) -> int:
    """What the reply was allowed to take, with what overflows had taught by then."""
    learned = None
    for entry in before:
        if isinstance(entry.record, SettingRecord) and entry.record.name == f"fit:{model.provider}/{model.id}":
            learned = entry.record.value
    window = learned.get("window") if isinstance(learned, dict) else None
    known = min(model.window, window) if isinstance(window, int) and window > 0 else model.window
    return max(1, min(model.max_output, known // 4))


def _nearest(
    sent: Projection,
    model: ModelInfo,
    limit: int,
    thinking: str | None,
    request: RequestRecord,
    made: _Made,
    ttl: str | None,
) -> tuple[ModelInfo, _Made]:
    """The model with other abilities, if that gives the recorded hash: a server of one's own may have told less of it
    then than is known now."""
    told = model.abilities
    for abilities in (
        replace(told, tools=not told.tools),
        replace(told, images=not told.images),
        replace(told, documents=not told.documents),
    ):
        other = replace(model, abilities=abilities)
        again = _made(_encoder(sent, other, limit, thinking), request, ttl)
        if again.prefix == request.prefix:
            return other, again
    return model, made


def _why(request: RequestRecord, same: bool | None, redacted: bool) -> str:
    if same:
        return "what was redacted since is hidden here; the proof was made with it" if redacted else ""
    if request.purpose != "turn":
        return f"it was made for a purpose of its own ({request.purpose}), with what the log does not hold of it"
    if redacted:
        return "something that it showed was redacted since"
    return (
        "the log, or what is known of the model, is not as it was then: entries were lost or erased, or the data of "
        "the model (catalog, moonwake.toml) has changed"
    )

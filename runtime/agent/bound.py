"""Reasoning that is bound to what stood before it: what of it a request may still carry. Pure.

Some models refuse a request whose reasoning stands under another prefix than it was produced under. Laws:
- No request to such a model leaves with reasoning that `check_binding` rejects. Where the prefix has moved, whatever
  moved it, the reasoning after it is left out by edits, which are in the log before the request leaves.
- A request that extends one that was held to this needs no look: its reasoning stands where it stood.
- Where a provider drops such reasoning only when it is asked to, a request that does not ask is held to this, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from governors.errors import IllegalPayload
from governors.messages import AssistantMessage, Message, Thinking
from governors.report import Action, Governed
from governors.tokens import Counter
from governors.wire import WIRES
from governors.wire.base import Abilities, Payload
from governors.wire.binding import check_binding
from governors.wire.encoded import roll
from governors.wire.encoder import Encoder

from ..providers.base import ModelInfo
from ..session.entries import EditRecord, Entry, MessageRecord, OutcomeRecord, RequestRecord
from .decided import without_thinking


def refuses_moved(abilities: Abilities) -> bool:
    """Whether a model refuses, or loses, reasoning whose prefix has moved, and cannot be told to drop it."""
    return abilities.binds_prefix and not abilities.drop_block


def as_asked(info: ModelInfo, thinking: str | None) -> ModelInfo:
    """`info` for a request at this level of `thinking`. Anthropic takes the wish to drop what was moved with adaptive
    thinking only (A6): elsewhere the model is as one that cannot be told."""
    if info.wire != "anthropic" or not info.abilities.drop_block:
        return info
    asks = info.abilities.thinking != "none" if thinking is None else info.abilities.thinking == "adaptive"
    if asks and thinking != "off":
        return info
    return replace(info, abilities=replace(info.abilities, drop_block=False))


def was_held(info: ModelInfo, previous: RequestRecord) -> bool:
    """Whether the request before was held to this; `info` is of no level of thinking (`as_asked`)."""
    return refuses_moved(as_asked(info, previous.thinking).abilities)


def lost_reasoning(
    branch: Sequence[Entry], messages: Sequence[Message], info: ModelInfo, prefix_at: Callable[[int], str | None]
) -> tuple[EditRecord, ...]:
    """Edits that leave out the reasoning in `messages` that no longer stands where it was produced. `prefix_at` gives
    the rolling hash over so many blocks of the request, None where it has not so many."""
    produced = {entry.id: request for entry, request in _answers(branch, info)}
    found: list[EditRecord] = []
    for message in messages:
        if not isinstance(message, AssistantMessage) or not isinstance(message.origin, int):
            continue
        request = produced.get(message.origin)
        signed = request is not None and any(map(_is_signed, message.content))
        if request is not None and signed and prefix_at(request.blocks) != request.prefix:
            found += without_thinking(message, branch)
    return tuple(found)


def lost_in_draft(
    branch: Sequence[Entry], messages: Sequence[Message], info: ModelInfo, draft: Encoder
) -> tuple[EditRecord, ...]:
    """The same of the request that `draft` stands at. Raises `IllegalPayload` when it would be refused all the same."""

    def prefix_at(blocks: int) -> str | None:
        return draft.prefix_at(blocks) if blocks <= draft.blocks else None

    lost = lost_reasoning(branch, messages, info, prefix_at)
    if not lost:
        _hold(branch, info, draft.body())
    return lost


def lost_in_body(
    branch: Sequence[Entry], messages: Sequence[Message], info: ModelInfo, body: Payload
) -> tuple[EditRecord, ...]:
    """The same of a finished body."""
    digests = ["", *(digest.hex() for digest in roll(b"", WIRES[info.wire].prefix_blocks(body)))]
    lost = lost_reasoning(branch, messages, info, lambda blocks: digests[blocks] if blocks < len(digests) else None)
    if not lost:
        _hold(branch, info, body)
    return lost


def _hold(branch: Sequence[Entry], info: ModelInfo, body: Payload) -> None:
    found = check_binding(produced_under(branch, info), body, WIRES[info.wire], info.abilities)
    if found:
        raise IllegalPayload(info.wire, found)


def produced_under(branch: Sequence[Entry], info: ModelInfo) -> Mapping[str, str]:
    """The prefix hash of the request that brought each signature of this model's reasoning; a signature that came more
    than once tells nothing."""
    found: dict[str, set[str]] = {}
    for entry, request in _answers(branch, info):
        assert isinstance(entry.record, MessageRecord)
        for part in entry.record.content:
            if isinstance(part, Thinking) and part.signature is not None:
                found.setdefault(part.signature, set()).add(request.prefix)
    return {signature: prefixes.pop() for signature, prefixes in found.items() if len(prefixes) == 1}


def unbound(governed: Governed, edits: Sequence[EditRecord], counter: Counter) -> Governed:
    """`governed`, which says what `edits` take out of view, and why."""
    replies = {edit.target for edit in edits}
    thoughts = (
        part
        for message in governed.messages
        if isinstance(message, AssistantMessage) and message.origin in replies
        for part in message.content
        if isinstance(part, Thinking)
    )
    tokens = max(1, sum(counter.count(part.text) for part in thoughts))
    what, why = f"the reasoning of {len(replies)} replies left out", "it was bound to what has changed before it"
    report = governed.report
    action = Action("unbind", what, why, tokens)
    return replace(governed, report=replace(report, after=max(0, report.after - tokens), actions=(action,)))


def _answers(branch: Sequence[Entry], info: ModelInfo) -> Iterator[tuple[Entry, RequestRecord]]:
    """The replies of this model, each with the request that it answers."""
    requests: dict[int, RequestRecord] = {}
    answered: RequestRecord | None = None
    for entry in branch:
        match entry.record:
            case RequestRecord() as record:
                requests[entry.id] = record
            case OutcomeRecord(request=request):
                answered = requests.get(request)
            case MessageRecord(role="assistant"):
                of_it = answered
                answered = None
                if of_it is not None and (of_it.provider, of_it.model, of_it.wire) == (
                    info.provider,
                    info.id,
                    info.wire,
                ):
                    yield entry, of_it
            case _:
                pass


def _is_signed(part: object) -> bool:
    return isinstance(part, Thinking) and part.signature is not None

"""Pinned entries: what of them a head carries when they go out of view, and how a model sees them. Pure.

Laws:
- A head carries the pinned entries of its branch that it does not show, and those that the head before it carried,
  unless they were unpinned or redacted since. An entry that is pinned when it is out of view comes back with the next
  head, if it is in the part of the log that was read.
- The newest win: what does not fit the room is shortened to a line that says how to recall it, and goes where not even
  that fits.
- A pin is carried as it was shown (edits hold); a reply without its reasoning and calls, a message without its context.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from governors.messages import Document, Image, Text, UserMessage, UserPart
from governors.scrub import scrub

from ..entries import (
    BranchSummaryRecord,
    CallReference,
    Entry,
    ExtensionRecord,
    HeadRecord,
    MessageRecord,
    Part,
    Pinned,
    ResultRecord,
)
from .edits import Edits
from .ranges import Range
from .redaction import REDACTED

PINNED = "[Pinned entries from earlier in this conversation:]"
_SHORT = 80  # characters of a pin that is shortened


def pins_message(head: int, pins: Sequence[Pinned], redacted: Callable[[int], bool]) -> UserMessage:
    """What a model sees of the pins that the entry `head` carries."""
    parts: list[UserPart] = [Text(PINNED)]
    for pin in pins:
        parts.append(Text(f"[#{pin.entry}, {scrub(pin.said)}]"))
        parts += [Text(REDACTED)] if redacted(pin.entry) else pin.content
    return UserMessage(tuple(parts), origin=head)


def pins_to_carry(
    branch: Iterable[Entry],
    shown: Range,
    late: Mapping[CallReference, int | None],
    earlier: HeadRecord | None,
    pinned: Mapping[int, bool],
    redacted: Collection[int],
) -> tuple[Pinned, ...]:
    """The pins of a head that will show `shown`, whole, oldest first.

    `late` gives the results that are shown at their own place (`Projection.open`), `earlier` is the head before,
    `pinned` says for each entry whether the newest `pin` entry that names it pins it.
    """
    carried = {pin.entry: pin for pin in (earlier.pins if earlier is not None else ())}
    found = {each: pin for each, pin in carried.items() if pinned.get(each, True) and each not in redacted}
    if any(on and target not in found for target, on in pinned.items()):
        entries = tuple(branch)
        edits = Edits(entries, redacted)
        for entry in entries:
            if pinned.get(entry.id) and not edits.hides(entry.id) and not _is_shown(entry, shown, late):
                pin = _pin(entry, edits)
                if pin is not None:
                    found[entry.id] = pin
    return tuple(found[each] for each in sorted(found))


def fit_pins(pins: Sequence[Pinned], room: int, measure: Callable[[UserMessage], int]) -> tuple[Pinned, ...]:
    """`pins` within `room` (tokens, as `measure` gives them for a message): the newest stay whole."""
    if not pins:
        return ()
    left = room - measure(_alone(()))
    kept: list[Pinned] = []
    for pin in reversed(pins):
        for form in (pin, shortened(pin)):
            size = measure(_alone((form,))) - measure(_alone(()))
            if size <= left:
                kept.append(form)
                left -= size
                break
    return tuple(reversed(kept))


def shortened(pin: Pinned) -> Pinned:
    """The pin as a line that names the entry to recall."""
    text = " ".join(" ".join(part.text for part in pin.content if isinstance(part, Text)).split())
    if len(text) <= _SHORT and not any(not isinstance(part, Text) for part in pin.content):
        return pin
    hint = f"(shortened; recall #{pin.entry})"
    if text.endswith(hint):
        return pin
    return replace(pin, content=(Text(f"{text[:_SHORT].rstrip()}… {hint}"),))


def _alone(pins: Sequence[Pinned]) -> UserMessage:
    return pins_message(0, pins, lambda _: False)


def _is_shown(entry: Entry, shown: Range, late: Mapping[CallReference, int | None]) -> bool:
    match entry.record:
        case MessageRecord(role="assistant"):
            return shown.shows(entry.id)
        case ResultRecord(call=call):
            return shown.shows(entry.id if late.get(call) == entry.id else call[0])
        case _:
            return entry.id >= shown.start


def _pin(entry: Entry, edits: Edits) -> Pinned | None:
    """What is carried of an entry; None when it says nothing."""
    said, content = _said(entry)
    parts = tuple(part for part in edits.content(entry.id, content) if isinstance(part, (Text, Image, Document)))
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        return None
    return Pinned(entry=entry.id, said=said, content=parts)


def _said(entry: Entry) -> tuple[str, Sequence[Part]]:
    match entry.record:
        case MessageRecord(role=role, content=content):
            return role, content
        case ResultRecord(tool=tool, content=content):
            return tool, content
        case BranchSummaryRecord(text=text):
            return "summary of another branch", (Text(text),)
        case ExtensionRecord(name=name, content=content):
            return name, content
        case _:
            return "", ()

"""The commands about single entries: /show, /pin, /unpin, /label, /note, /omit, /restore, /redact."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import anyio.to_thread

from ..agent.branches import whole
from ..errors import SessionError
from ..session.entries import Blob, CompactionRecord, ExtensionRecord, HeadRecord, ResultRecord
from ..session.moving.finding import entry_of, hidden, newest_message
from ..session.view.redaction import stale_summaries
from .entry_lines import entry_lines, entry_title, veiled
from .reducer import Line
from .sanitize import clean
from .seat import Act, Seat, needed_number, numbered, one_number, tell


async def show(seat: Seat, argument: str) -> None:
    session = await whole(seat.agent.session)
    number = one_number("/show", argument)
    entry = newest_message(session.tree) if number is None else entry_of(session.tree, number)
    unseen = hidden(session.tree)
    redacted = entry.id in unseen
    if isinstance(entry.record, CompactionRecord | HeadRecord) and unseen:
        entry = veiled(entry, unseen, stale_summaries(session.tree.entries, unseen))
    output = entry.record.whole if isinstance(entry.record, ResultRecord | ExtensionRecord) and not redacted else None
    if isinstance(output, Blob):
        blob, blobs = output, session.blobs
        output = await anyio.to_thread.run_sync(blobs.get, blob) if blobs is not None else None
    tell(seat, entry_title(entry))
    seat.audience.show(Line("plain", clean(entry_lines(entry, redacted=redacted, output=output))))


async def pin(seat: Seat, argument: str) -> None:
    entry = await seat.agent.marks.pin(one_number("/pin", argument))
    tell(seat, f"Pinned #{entry}: it stays in the model's view. /unpin {entry} takes it off.")


async def unpin(seat: Seat, argument: str) -> None:
    entry = await seat.agent.marks.pin(one_number("/unpin", argument), on=False)
    tell(seat, f"#{entry} is not pinned any more.")


async def label(seat: Seat, argument: str) -> None:
    number, text = numbered(argument)
    if text:
        entry = await seat.agent.marks.label(text, number)
        tell(seat, f"#{entry} is called {text} now. /label {entry} takes the name away.")
    elif number is not None:
        names = await seat.agent.marks.unlabel(number)
        tell(seat, f"#{number} is not called {', '.join(names)} any more." if names else f"#{number} has no name.")
    else:
        raise SessionError("/label needs a name: /label beans, or /label 12 beans")


async def note(seat: Seat, argument: str) -> None:
    if not argument:
        raise SessionError("/note needs a text; no model will see it")
    tell(seat, f"Noted as #{await seat.agent.marks.note(argument)}.")


async def omit(seat: Seat, argument: str) -> None:
    entry = await seat.agent.marks.omit(needed_number("/omit", argument))
    tell(seat, f"The model does not see #{entry} any more on this branch. /restore {entry} shows it again.")


async def restore(seat: Seat, argument: str) -> None:
    entry = await seat.agent.marks.restore(needed_number("/restore", argument))
    tell(seat, f"The model sees #{entry} again, as it was.")


async def redact(seat: Seat, argument: str) -> None:
    number, rest = numbered(argument)
    if number is None or rest not in ("", "yes"):
        raise SessionError("/redact needs the number of an entry, such as /redact 12. /tree and /show tell the numbers")
    if rest == "yes":
        await _redact(seat, number)
        return
    session = await whole(seat.agent.session)
    entry = entry_of(session.tree, number)
    if entry.id in hidden(session.tree):
        raise SessionError(f"entry {number} is redacted already")
    tell(seat, entry_title(entry))
    seat.audience.show(Line("past", clean(entry_lines(entry))))
    tell(seat, "Hide this for good, on every branch, from models, recall, search and exports? It cannot be taken back.")
    seat.audience.offer(f"/redact {number} yes", f"To do it, say: /redact {number} yes")


async def _redact(seat: Seat, number: int) -> None:
    done = await seat.agent.marks.redact(number)
    await seat.settle()
    told = _numbers(done.entries)
    tell(seat, f"Redacted {told}. The file still holds the words: `moonwake sessions gc --redacted` erases them.")
    if done.results:
        tell(seat, f"Results of its calls are entries of their own, not redacted: {_numbers(done.results)}.")
    if done.stale:
        tell(seat, f"A summary was made from it and may tell of it: {_numbers(done.stale)}. /show shows it.", "warning")


def _numbers(entries: tuple[int, ...]) -> str:
    return ", ".join(f"#{entry}" for entry in entries)


MARK_ACTS: Mapping[str, Act] = MappingProxyType(
    {
        "/show": show,
        "/pin": pin,
        "/unpin": unpin,
        "/label": label,
        "/note": note,
        "/omit": omit,
        "/restore": restore,
        "/redact": redact,
    }
)

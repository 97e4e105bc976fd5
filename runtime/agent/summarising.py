"""A summary by the model that the conversation is with.

It is asked at the end of the warm prefix: same system prompt, tools and messages, and one more message that asks. Laws:
- A summary that does not count is asked for once more, with the reason; a call that ended in a problem is not.
- A conversation that is too long to be asked about is told to the model in pieces, each with the summary so far.
- Where the provider says that even a piece is too long, the oldest of it goes, down to one message; then it is said
  that the window is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from governors.errors import GovernorError, IllegalPayload
from governors.messages import CompactionItem, Text, UserMessage
from governors.tokens import message_tokens, scaled
from governors.wire import WIRES
from governors.wire.encoder import Encoder

from ..compaction.chunks import pieces, transcript
from ..compaction.keeping import Fold
from ..compaction.parts import Refused, Summary, ask, take
from ..session.entries import RequestRecord, SettingRecord
from .aside import aside_of, prepare_aside
from .desk import Desk
from .drafts import Drafts
from .fit import fit_setting, learn
from .reserving import UNSEEN
from .sending import Outgoing, Sent, send
from .surveying import Survey

PURPOSE = "compaction"

SHARE = 0.15  # of the budget: how long a summary may be
_WORDS = 0.6  # a token, of the languages that people mostly use
_LONGEST = 0.3  # of the budget: what notes take beside the next piece, at most
_PIECE = 0.8  # of the budget: a piece with all that stands around it
_NOTES = "You keep the notes of a long conversation between a user and an assistant."
_AGAIN = "\n\nYour last answer does not count: {why}. Write all parts, and nothing else."
_SO_FAR = "The notes so far, of what came before:\n\n{notes}\n\n"
_FOLLOWS = "What follows is the next part of the conversation, as it was.\n\n{said}\n\n"


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be folded, and what the user wants to be kept above all. `turn` is the entry that opened the turn at
    hand, None where nobody speaks."""

    desk: Desk
    survey: Survey
    fold: Fold
    turn: int | None = None
    focus: str | None = None

    @property
    def replaced(self) -> int:
        """The tokens that go out of view."""
        return self.survey.tokens_of(self.fold.folded)

    def size(self, text: str, item: CompactionItem | None = None) -> int:
        """The tokens that `text` would take in the place of what goes, or `item` where that is sent."""
        situation = self.survey.situation
        tokens = message_tokens(UserMessage((Text(text),), item=item), situation.drafts.counter)
        return scaled(tokens, situation.fit.factor)


@dataclass(frozen=True, slots=True)
class Made:
    """The summary, the calls that it took, and what says the same to models that can read it."""

    summary: str
    sent: tuple[Sent, ...] = ()
    item: CompactionItem | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no summary, for a person, and the calls that were made for nothing."""

    why: str
    sent: tuple[Sent, ...] = ()


async def summarise(work: Work) -> Made | Failed:
    """Ask the model of the conversation. Raises `SessionError`, and what the spend ledger refuses with."""
    question = ask(work.focus, work.survey.rules, words=most_words(work))
    sent: list[Sent] = []
    wanted, why = question, ""
    for _ in range(2):
        answer = await _asked_warm(work, wanted)
        if answer is None or (answer.problem is not None and answer.problem.kind == "overflow"):
            if answer is not None:
                sent.append(answer)
                await learn_window(work, answer)
            return await _in_pieces(work, question, sent)
        sent.append(answer)
        if answer.problem is not None:
            return Failed(answer.problem.text, tuple(sent))
        taken = take(answer.reply, replaced=work.replaced, size=work.size(answer.reply.text))
        if isinstance(taken, Summary):
            return Made(taken.text, tuple(sent))
        why = taken.why
        wanted = question + _AGAIN.format(why=why)
    return Failed(f"the summary does not count: {why}", tuple(sent))


def most_words(work: Work) -> int:
    """How long a summary may be, in words."""
    return max(100, round(work.survey.budget * SHARE * _WORDS))


async def _asked_warm(work: Work, question: str) -> Sent | None:
    """The answer at the end of the warm prefix; None when there is no room for the question."""
    desk = replace(work.desk, drafts=Drafts(work.desk.drafts.counter))
    model = work.survey.situation.model
    try:
        prepared = await prepare_aside(desk, model, question, decide=False)
    except GovernorError:
        return None
    if prepared is None:
        return None
    return await send(work.desk, model, aside_of(prepared, PURPOSE), turn=work.turn)


async def _in_pieces(work: Work, question: str, sent: list[Sent]) -> Made | Failed:
    messages = work.survey.shown.projection.messages
    told = transcript([messages[place] for place in work.fold.folded])
    notes = ""
    room = work.survey.budget * _PIECE - work.size(question)
    most = round(room - work.survey.budget * SHARE)
    if most < 1:
        return Failed("the window is full: not even a summary of one message fits into it", tuple(sent))
    for piece in pieces(told, most, work.size):
        taken = await _noted(work, question, notes, piece, sent)
        if isinstance(taken, Failed):
            return taken
        notes = taken.text
    size = work.size(notes)
    if size >= work.replaced:
        return Failed(f"the summary saves nothing: {size:,} tokens for {work.replaced:,}", tuple(sent))
    return Made(notes, tuple(sent))


async def _noted(work: Work, question: str, notes: str, piece: Sequence[str], sent: list[Sent]) -> Summary | Failed:
    """The notes with one more piece in them."""
    left, gone, again = list(piece), 1, ""
    while True:
        so_far = _SO_FAR.format(notes=notes) if notes else ""
        text = so_far + _FOLLOWS.format(said="\n\n".join(left)) + question + again
        answer = await send(work.desk, work.survey.situation.model, _plain(work, text), turn=work.turn)
        sent.append(answer)
        problem = answer.problem
        if problem is not None and problem.kind == "overflow":
            await learn_window(work, answer)
            if len(left) == 1:
                return Failed(f"the window is full: {problem.text}", tuple(sent))
            del left[: min(gone, len(left) - 1)]
            gone *= 2  # one by one would ask once for each message
            continue
        if problem is not None:
            return Failed(problem.text, tuple(sent))
        size = work.size(answer.reply.text)
        taken = take(answer.reply, replaced=max(size + 1, work.replaced), size=size)
        if isinstance(taken, Summary) and size > (longest := round(work.survey.budget * _LONGEST)):
            taken = Refused(f"it is too long: {size:,} tokens of {longest:,} at most")
        if not isinstance(taken, Refused):
            return taken
        if again:
            return Failed(f"the summary does not count: {taken.why}", tuple(sent))
        again = _AGAIN.format(why=taken.why)


def _plain(work: Work, text: str) -> Outgoing:
    """A request that has nothing of the conversation but `text`."""
    situation = work.survey.situation
    info, budget = situation.model.info, situation.budget
    wire = WIRES[info.wire]
    encoder = Encoder(
        wire, system=_NOTES, tools=(), abilities=info.abilities, model=info.id, max_output=budget.max_output
    )
    encoder.append((UserMessage((Text(text),)),))
    violations = tuple(each for each in encoder.violations() if each.severity != "$")
    if violations:
        raise IllegalPayload(info.wire, violations)
    record = RequestRecord(
        purpose=PURPOSE,
        provider=info.provider,
        model=info.id,
        wire=info.wire,
        prefix=encoder.prefix,
        forecast=work.size(_NOTES) + work.size(text),
        budget=budget.tokens,
        blocks=encoder.blocks,
    )
    return Outgoing(record, encoder.to_bytes(None), record.forecast + UNSEEN, budget.max_output)


async def learn_window(work: Work, answer: Sent) -> None:
    """An overflow tells how large the window really is."""
    request = answer.request.record
    if answer.problem is None or not isinstance(request, RequestRecord):
        return
    model = work.survey.situation.model
    fit = learn(work.survey.situation.fit, answer.problem, request.forecast)
    await work.desk.session.append(SettingRecord(name=fit_setting(model), value=fit.as_setting()))

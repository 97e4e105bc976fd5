"""A question to the model beside the conversation: about it, but no part of it.

The request extends the warm prefix (same system prompt, tools and messages, and one more message that asks), so that it
costs little. Laws: it is recorded as `request` (with what it `asked`) and `outcome`, under a purpose of its own, and
leaves nothing that a model sees later; what the governors have to decide so that it fits holds for it alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from governors.errors import GovernorError
from governors.messages import Text

from ..errors import MoonwakeError
from ..ledger.base import LedgerUnusable, SpendingLimit
from ..providers.base import ChosenModel
from ..session.entries import Entry, HeadRecord, MessageRecord, Record
from .desk import Desk
from .drafts import Drafts
from .ease import at_ease
from .fit import known_fit
from .prepare import Prepared, Situation, prepare
from .sending import Outgoing, send

_MOST_DECISIONS = 4
_FAILED = {
    "length": "the answer reached the model's output limit before its end",
    "refused": "the model refused to answer",
    "error": "the answer ended in an error",
}


class AsideFailed(MoonwakeError):
    """The model gave no usable answer; the text says why."""


async def ask_aside(desk: Desk, drafts: Drafts, purpose: str, question: str) -> str:
    """The model's answer to `question` about the conversation so far; only a complete one counts.

    `drafts` are of their own: those of the conversation go on as they were. Raises `AsideFailed`, `SessionError`.
    """
    model = desk.model()
    try:
        prepared = await prepare_aside(replace(desk, drafts=drafts), model, question)
    except GovernorError as error:
        raise AsideFailed(str(error)) from error
    if prepared is None:
        raise AsideFailed("the question cannot be brought under the model's budget")
    try:
        finished = (await send(desk, model, aside_of(prepared, purpose), turn=None)).finished
    except (SpendingLimit, LedgerUnusable) as error:
        raise AsideFailed(str(error)) from error
    if finished.problem is not None:
        raise AsideFailed(finished.problem.text)
    answer = finished.message
    if answer.stop != "stop" or not answer.text.strip():
        raise AsideFailed(_FAILED.get(answer.stop, "the model gave no answer in words"))
    return answer.text.strip()


async def prepare_aside(desk: Desk, model: ChosenModel, question: str, *, decide: bool = True) -> Prepared | None:
    """The request that asks `question` at the end of the conversation. None when it does not fit: without `decide`, as
    soon as anything would have to go for it. Raises `GovernorError`."""
    session, standing = desk.session, desk.standing()
    fit = known_fit(model, standing.settings)
    asked = MessageRecord(role="user", content=(Text(question),))
    imagined = list(session.branch())
    _imagine(imagined, session.tree.next_id, asked)
    turn = imagined[-1].id
    for _ in range(_MOST_DECISIONS if decide else 1):
        situation = Situation(
            (), tuple(imagined), turn, model, fit, desk.drafts, desk.margin, desk.thinking, None, standing=standing
        )
        outcome = (await at_ease(len(imagined), partial(prepare, situation))).outcome
        if isinstance(outcome, Prepared):
            return replace(outcome, record=replace(outcome.record, asked=question))
        for record in outcome.records:
            _imagine(imagined, imagined[-1].id + 1, record)
    return None


def aside_of(prepared: Prepared, purpose: str) -> Outgoing:
    """The prepared question as it leaves, under a purpose of its own."""
    record = replace(prepared.record, purpose=purpose, decisions=())
    return Outgoing(record, prepared.draft.to_bytes(None), prepared.most, prepared.output, prepared.cause)


def _imagine(branch: list[Entry], identity: int, record: Record) -> None:
    """Let `branch` go on with `record`, which will never be in the log."""
    if isinstance(record, HeadRecord) and record.resume == 0:
        record = replace(record, resume=identity)  # the head itself: no step is kept
    last = branch[-1] if branch else None
    branch.append(Entry(identity, last.id if last is not None else None, last.at if last is not None else "", record))

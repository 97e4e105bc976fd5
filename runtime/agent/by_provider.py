"""The provider's own compaction, of what goes out of view.

The request is the conversation up to where the kept part begins, byte for byte as it was sent before, and what asks for
the compaction; so it reads the warm cache. What comes back is opaque, and goes back as it came to models that can read
it; all others read the summary where it has one, else a constant text that says what to do. Laws:
- A model without the ability is told of: nothing else is tried in its place.
- An answer that holds anything but exactly one compaction, of what has a name, is a failure (`remote`).
- What saves nothing is a failure.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from governors.errors import ContextOverflow, IllegalPayload
from governors.messages import CompactionItem
from governors.wire import WIRES
from governors.wire.common import dump
from governors.wire.compaction_items import UNREADABLE, Compacting
from governors.wire.encoder import Encoder

from ..compaction.parts import ask
from ..compaction.remote import UnknownItem, compaction_in
from ..session.entries import RequestRecord
from .bound import as_asked
from .drafts import Drafts
from .ease import at_ease
from .folding import as_told
from .prepare import frame_of, place_of
from .reserving import UNSEEN
from .sending import Outgoing, Sent, send
from .summarising import PURPOSE, Failed, Made, Work, learn_window, most_words


async def by_provider(work: Work) -> Made | Failed:
    """Ask the provider. Raises `SessionError`, and what the spend ledger refuses with."""
    model = work.survey.situation.model
    ways = WIRES[model.info.wire].stepwise.compacts
    if not model.info.abilities.compaction or ways is None:
        why = "has no compaction of its provider's own here; `compaction.strategy` can be `summary` instead"
        return Failed(f"{model.name} {why}")
    outgoing = await at_ease(len(work.survey.sizes), partial(_outgoing, work, ways(_wanted(work))))
    if isinstance(outgoing, Failed):
        return outgoing
    sent = await send(work.desk, model, outgoing, turn=work.turn)
    if sent.problem is not None:
        if sent.problem.kind == "overflow":
            await learn_window(work, sent)
        return Failed(sent.problem.text, (sent,))
    return _taken(work, sent)


def _taken(work: Work, sent: Sent) -> Made | Failed:
    info = work.survey.situation.model.info
    try:
        found = compaction_in(sent.finished.remote)
    except UnknownItem as unknown:
        return Failed(f"{unknown}; nothing was folded", (sent,))
    except ValueError as problem:
        return Failed(f"the provider's compaction does not count: {problem} (stop: {sent.reply.stop})", (sent,))
    counted = sent.reply.usage.output if sent.reply.usage is not None else 0
    item = CompactionItem(info.abilities.compaction, info.wire, dump(dict(found)), counted)
    content = found.get("content")
    summary = content if isinstance(content, str) and content.strip() else UNREADABLE
    size = work.size(summary, item)
    if size >= work.replaced:
        return Failed(f"the compaction saves nothing: {size:,} tokens for {work.replaced:,}", (sent,))
    return Made(summary, (sent,), item)


def _wanted(work: Work) -> str | None:
    """What the provider is told of what to keep; None: as it does by itself."""
    if work.focus is None:
        return None
    if work.survey.situation.model.info.wire == "anthropic":  # takes the place of the usual instructions
        return ask(work.focus, work.survey.rules, words=most_words(work))
    return work.focus


def _outgoing(work: Work, compacting: Compacting) -> Outgoing | Failed:
    """The request, up to where the kept part begins."""
    here, drafts = work.survey, Drafts(work.desk.drafts.counter)
    standing = here.shown.standing
    projection = drafts.project(here.situation.branch, standing.redacted)
    model, settings = here.situation.model, projection.settings
    info = as_asked(as_told(model.info, settings), settings.get("thinking", here.situation.thinking))
    situation = replace(here.situation, drafts=drafts, model=replace(model, info=info))
    frame = frame_of(situation, projection, standing)
    place = replace(place_of(situation, projection, standing), turn=0, boundaries=())
    end = work.fold.start if work.fold.resume is None else work.fold.resume
    try:
        governed = drafts.govern(frame, projection.messages[:end], place, None)
    except ContextOverflow as overflow:
        return Failed(f"what is to be folded does not fit into a request: {overflow}")
    if governed.decisions:
        return Failed("what is to be folded does not fit into a request as it is")
    encoder = Encoder(
        WIRES[info.wire],
        system=frame.system,
        tools=frame.array,
        abilities=info.abilities,
        model=info.id,
        max_output=frame.budget.max_output,
        thinking=frame.thinking,
        compacting=compacting,
    )
    encoder.append(governed.messages)
    encoder.close()
    violations = tuple(each for each in encoder.violations() if each.severity != "$")
    if violations:
        return Failed(str(IllegalPayload(info.wire, violations)))
    report = governed.report
    record = RequestRecord(
        purpose=PURPOSE,
        provider=info.provider,
        model=info.id,
        wire=info.wire,
        prefix=encoder.prefix,
        forecast=report.after,
        budget=report.budget,
        blocks=encoder.blocks,
        thinking=frame.thinking,
    )
    most = max(report.most, report.after) + UNSEEN
    return Outgoing(record, encoder.to_bytes(None), most, frame.budget.max_output)

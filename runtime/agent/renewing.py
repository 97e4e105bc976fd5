"""The request that keeps a prompt in its provider's cache: the last one once more, with hardly any answer. Pure.

A read of the whole prefix renews its lifetime, and the smallest answer costs nothing worth speaking of. The bytes are
those of the last request of a turn, cache marks included; where they would move anything, or the provider kept nothing
to begin with, there is no such request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from governors.messages import Usage
from governors.wire import WIRES
from governors.wire.base import LIFETIMES, Payload
from governors.wire.encoder import Encoder

from ..hooks.payload import changed
from ..providers.base import ModelInfo
from ..session.entries import EditRecord, Entry, HeadRecord, OutcomeRecord, RequestRecord

#: The purpose of such requests in the log.
WARMING = "warming"
#: The least that can be asked for, by the field that says how much. Anthropic takes 0 only without streaming (A12) and
#: without thinking; the Responses protocol wants 16 (O5).
_LEAST = {"max_tokens": 1, "max_completion_tokens": 1, "max_output_tokens": 16}


@dataclass(frozen=True, slots=True)
class Renewal:
    """`record` is to be in the log before `body` leaves. `prompt` is what the provider counted of it before, in
    tokens."""

    record: RequestRecord
    body: Payload
    prompt: int


def renewal_of(branch: Sequence[Entry], encoder: Encoder | None, info: ModelInfo, redaction: int) -> Renewal | None:
    """What renews the prefix of the last turn request on `branch`, which `encoder` stands at.

    `redaction` is the session's newest `redact` entry. None where there is nothing to renew: another model answers now,
    something was edited since, nothing was kept, or the answer cannot be made small.
    """
    found = _last_request(branch, redaction)
    if encoder is None or found is None:
        return None
    last, usage = found
    if (last.provider, last.model, last.wire) != (info.provider, info.id, info.wire):
        return None
    body, prefix = encoder.body(LIFETIMES.get(last.lifetime)), encoder.prefix
    if last.changes:
        try:
            body = changed(body, last.changes)
        except ValueError:  # the encoder stands elsewhere by now
            return None
        prefix = WIRES[info.wire].prefix_hash(body)
    if prefix != last.prefix:
        return None
    body = least_answer(body)
    if any(each.severity != "$" for each in WIRES[info.wire].check(dict(body), info.abilities)):
        return None  # a budget of thinking, say, which has to be below the limit
    return Renewal(replace(last, purpose=WARMING, decisions=(), stand_ins=(), reserved=None), body, usage.prompt)


def renewed_by(branch: Sequence[Entry]) -> Entry | None:
    """The request that a warming at the end of `branch` repeats: the newest one of a turn."""
    return next((entry for entry in reversed(branch) if _is_turn(entry)), None)


def least_answer(body: Payload) -> Payload:
    """`body`, asking for the shortest answer that there is; all else, and so the prefix, stays as it is."""
    changed: Mapping[str, int] = {name: least for name, least in _LEAST.items() if name in body}
    return {**body, **changed}


def _last_request(branch: Sequence[Entry], redaction: int) -> tuple[RequestRecord, Usage] | None:
    """The newest turn request and its usage, if its prompt was kept and nothing of it has changed since."""
    outcomes: dict[int, OutcomeRecord] = {}
    for entry in reversed(branch):
        match entry.record:
            case EditRecord() | HeadRecord():
                return None
            case OutcomeRecord() as outcome:
                outcomes[outcome.request] = outcome
            case RequestRecord(purpose="turn") as request:
                usage = outcomes[entry.id].usage if entry.id in outcomes else None
                if redaction > entry.id or usage is None:
                    return None
                kept = usage.cache_read + usage.cache_write_5m + usage.cache_write_1h
                return (request, usage) if kept else None
            case _:
                pass
    return None


def _is_turn(entry: Entry) -> bool:
    return isinstance(entry.record, RequestRecord) and entry.record.purpose == "turn"

"""Making the requests of a conversation again, from its log and nothing else, with what they were forecast to take."""

from __future__ import annotations

import json
from typing import Any

from governors.tokens import TiktokenCounter
from governors.wire import WIRES
from governors.wire.base import LIFETIMES
from runtime.agent.drafts import Drafts
from runtime.agent.fit import known_fit
from runtime.agent.prepare import Prepared, Situation, prepare
from runtime.hooks.payload import changed
from runtime.session.entries import MessageRecord, RequestRecord
from runtime.session.view.standing import standing_of
from tests.agents import Talk


def again(it: Talk, request: int) -> Prepared:
    """The request of the entry `request`, prepared from the entries before it and nothing else."""
    entries = [entry for entry in it.agent.session.tree.entries if entry.id < request]
    branch = [entry for entry in it.agent.session.tree.branch_to(request) if entry.id < request]
    turn = [e.id for e in branch if isinstance(e.record, MessageRecord) and e.record.role == "user"][-1]
    model = it.agent.model
    fit, thinking = known_fit(model, standing_of(entries).settings), it.agent.equipment.thinking
    situation = Situation(entries, branch, turn, model, fit, Drafts(TiktokenCounter()), thinking=thinking)
    outcome = prepare(situation).outcome
    assert isinstance(outcome, Prepared), "the log holds every decision that shaped the request"
    return outcome


def assert_every_request_is_made_again(it: Talk) -> None:
    """Each request that the model got in this life is a function of the log before it, byte for byte."""
    sent = [entry for entry in it.on_disk() if isinstance(entry.record, RequestRecord)][-len(it.model.requests) :]
    for entry, request in zip(sent, it.model.requests, strict=True):
        assert isinstance(entry.record, RequestRecord)
        if entry.record.purpose != "turn":
            continue
        made = again(it, entry.id)
        ttl = LIFETIMES.get(entry.record.lifetime)
        if entry.record.changes:
            body = changed(made.draft.body(ttl), entry.record.changes)
            assert WIRES[entry.record.wire].prefix_hash(body) == entry.record.prefix
            assert bytes_of(body) == bytes_of(request.body)
        else:
            assert made.record.prefix == entry.record.prefix
            assert made.record.forecast == entry.record.forecast
            assert made.draft.to_bytes(ttl) == bytes_of(request.body)


def bytes_of(body: Any) -> bytes:
    return json.dumps(dict(body), ensure_ascii=False, separators=(",", ":")).encode()

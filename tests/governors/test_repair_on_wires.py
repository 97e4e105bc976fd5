"""What the repairs leave is legal on every wire: no refusal, nothing lost silently."""

from __future__ import annotations

import json

import pytest
from adversarial import adversarial_histories
from builders import call, reply, result, user
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Messages
from governors.repair import repair
from governors.wire import WIRES, Abilities

from .wire.wire_cases import CASES, MODELS

cases = st.sampled_from([*CASES, ("openai_chat", Abilities(id_pattern=r"[A-Za-z0-9_-]{1,40}"))])


@given(adversarial_histories, cases, st.sampled_from(MODELS))
def test_any_history_can_be_sent_once_repaired(
    history: Messages, case: tuple[str, Abilities], model: str | None
) -> None:
    """Adversarial histories break no rule of the protocol, for any model's abilities."""
    name, abilities = case
    repaired = repair((*history, user("go on")), id_pattern=abilities.id_pattern)
    payload = WIRES[name].encode(repaired, system="", tools=(), abilities=abilities, model=model)
    assert WIRES[name].check(payload, abilities) == ()
    json.dumps(payload, allow_nan=False).encode()


@pytest.mark.parametrize("name", sorted(WIRES))
def test_an_unrepaired_history_is_refused(name: str) -> None:
    """The check that the property relies on can fail."""
    broken = (user("go"), reply(call(id="a")), user("on"), result("b"))
    payload = WIRES[name].encode(broken, system="", tools=(), abilities=Abilities())
    assert WIRES[name].check(payload, Abilities())

"""`moonwake replay`: its table, its JSON, its picture, and what it refuses."""

from __future__ import annotations

import builtins
import json
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from pathlib import Path

import pytest

from governors.economy import UNIT
from governors.messages import AssistantMessage, Text, ToolCall, UserMessage
from governors.wire.base import Abilities
from runtime.errors import MoonwakeError
from runtime.providers.base import ModelInfo, Price
from runtime.replay import NAMES, Call, Item, Trace, Wanted, examine, replay, simulate
from runtime.replay.legality import checker
from runtime.replay.plot import panels, save, svg
from runtime.replay.policies import policy_named
from runtime.replay.pricing import pricing_named, pricing_of, pricing_recorded

from .traces import SEGMENTS, steady

CHAT = [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "a line\n" * 300},
    {"role": "assistant", "content": "Hello."},
]


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """Twelve rounds of a chat with results, so that two of them are old."""
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(json.dumps(line) for _ in range(12) for line in CHAT))
    return path


def test_json_has_a_line_for_each_policy(capsys: pytest.CaptureFixture[str]) -> None:
    """With the fields that programs read."""
    assert replay(Wanted((SEGMENTS,), hindsight=True), json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert [line["policy"] for line in told["policies"]] == list(NAMES)
    for line in told["policies"]:
        assert {"policy", "calls", "tokens", "hit", "cost", "warm_breaks", "violations"} <= line.keys()
        assert 0 < line["hit"] < 1
        assert line["dollars"] == pytest.approx(line["cost"] * 5e-6)  # recorded with a model of 5 dollars a million
    assert told["hindsight"] < min(line["cost"] for line in told["policies"])


def test_the_table_measures_against_the_first_policy(capsys: pytest.CaptureFixture[str]) -> None:
    """And says what the figures are of."""
    replay(Wanted((SEGMENTS,), ("append-only", "every-call", "moonwake"), hindsight=True))
    out = capsys.readouterr().out
    rows = out.splitlines()
    assert [row.split()[0] for row in rows[:5]] == ["policy", "append-only", "every-call", "moonwake", "hindsight"]
    assert "+0.0%" in rows[1]
    assert rows[2].count("+") == 1
    assert "-" in rows[3]
    assert "3 sessions" in out


def test_a_session_with_text_is_held_against_the_wire(chat: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stubs break no rule; sessions without times are told of."""
    assert replay(Wanted((chat,), ("every-call",))) == 0
    out = capsys.readouterr().out
    assert "1 sessions have no times" in out
    report, runs = examine(Wanted((chat,), ("every-call", "moonwake"), model="anthropic/claude-opus-4-5"))
    assert [line.violations for line in report.lines] == [0, 0]
    assert report.lines[0].warm_breaks > 0
    assert report.lines[0].dollars is not None
    assert runs["every-call"].trace.has_text


def test_a_broken_prompt_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """A prompt that ends with the assistant's word is one that the wire refuses."""
    question, answer = UserMessage((Text("hi"),)), AssistantMessage((Text("yes"),))
    trace = Trace("broken", 0, (Call(0.0, (Item(1, message=question), Item(1, message=answer)), True),))
    (row,) = simulate(trace, policy_named("append-only"), UNIT, check=checker(trace)).rows
    assert row.violations == 1
    assert checker(steady(3)) is None


def test_a_budget_bounds_every_prompt(chat: Path) -> None:
    """Whatever the policy, as long as something can go."""
    report, runs = examine(Wanted((chat,), ("append-only", "moonwake"), budget=10_000))
    assert [line.violations for line in report.lines] == [0, 0]
    assert all(row.prompt <= 10_000 for run in runs.values() for row in run.rows)


def test_the_picture_is_an_svg_with_a_line_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the longest session: sizes above, cost below."""
    path = tmp_path / "out.svg"
    replay(Wanted((SEGMENTS,), ("append-only", "moonwake")), plot=path)
    root = ElementTree.parse(path).getroot()
    lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4
    assert all(len(line.attrib["points"].split()) == 32 for line in lines)
    assert "moonwake" in path.read_text()


def test_names_in_a_picture_are_escaped() -> None:
    """A session may be called anything; one call makes a picture too."""
    trace = Trace("<a & b>", 100, (Call(0.0, (Item(10),), True),))
    run = simulate(trace, policy_named("append-only"), UNIT)
    ElementTree.fromstring(svg(panels(trace.name, {"x < y": run})))
    ElementTree.fromstring(svg(panels("none", {})))


def test_a_picture_elsewhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown kinds, PNG without matplotlib, folders that are not there: each says what to do."""
    charts = panels("x", {})
    with pytest.raises(MoonwakeError, match=r"ends in \.svg"):
        save(tmp_path / "out.gif", charts)
    with pytest.raises(MoonwakeError, match="cannot write"):
        save(tmp_path / "no" / "out.svg", charts)
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]  # handed through

    monkeypatch.setattr(builtins, "__import__", without)  # matplotlib is an edge: there or not
    with pytest.raises(MoonwakeError, match=r"out\.svg"):
        save(tmp_path / "out.png", charts)


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_a_png_where_matplotlib_is(tmp_path: Path) -> None:
    """Drawn without a window."""
    run = simulate(steady(5), policy_named("append-only"), UNIT)
    save(tmp_path / "out.png", panels("x", {"append-only": run}))
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_replay_is_an_error(tmp_path: Path) -> None:
    """No file, or none with a call."""
    with pytest.raises(MoonwakeError, match="name session files"):
        examine(Wanted(()))
    path = tmp_path / "quiet.jsonl"
    path.write_text(json.dumps(CHAT[0]))
    with pytest.raises(MoonwakeError, match="none of these files"):
        examine(Wanted((path,)))


class TestPricing:
    def test_a_model_of_the_catalog(self) -> None:
        """With its provider or without; in units of a plain token."""
        told = pricing_named("claude-opus-4-5")
        assert told == pricing_named("anthropic/claude-opus-4-5") == pricing_recorded("claude-opus-4-5")
        assert told.dollars == pytest.approx(5e-6)
        assert told.prices.rates.read == pytest.approx(0.1)
        assert told.prices.lifetimes == (300, 3_600)

    def test_elsewhere_the_provider_keeps_the_cache_by_itself(self) -> None:
        """One lifetime, no warming."""
        price = Price(plain=2, output=8, cache_read=0.5, cache_write_5m=2, cache_write_1h=2)
        info = ModelInfo("m", "p", "openai_chat", 1_000, 10, Abilities(), price=price)
        told = pricing_of(info).prices
        assert (told.lifetimes, told.warming, told.rates.write_5m) == ((300,), False, 1.0)

    def test_unknown_models_have_the_commonest_ratios_and_no_dollars(self) -> None:
        """Recorded ones; a named one must be known."""
        assert pricing_recorded("fake-model").prices == pricing_recorded(None).prices == UNIT
        assert pricing_recorded("fake-model").dollars is None
        with pytest.raises(MoonwakeError, match="fake-model"):
            pricing_named("fake-model")

    def test_a_model_without_a_price_is_refused(self) -> None:
        """There is nothing to reckon with."""
        with pytest.raises(MoonwakeError, match="no price"):
            pricing_of(ModelInfo("m", "p", "openai_chat", 1_000, 10, Abilities()))


def test_tools_that_were_called_are_offered() -> None:
    """A request with calls and no tools is refused by some hosts."""
    call = AssistantMessage((ToolCall("c", "look"),))
    items = (
        Item(1, message=UserMessage((Text("hi"),))),
        Item(1, message=call),
        Item(1, message=UserMessage((Text("go"),))),
    )
    trace = Trace("tools", 0, (Call(0.0, items, True),))
    (row,) = simulate(trace, policy_named("append-only"), UNIT, check=checker(trace)).rows
    assert row.violations == 0

"""`moonwake model show`: what is known of a model, and where each fact comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.commands import application
from runtime.errors import MoonwakeError

Show = Callable[..., str]


@pytest.fixture
def show(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Show:
    """Runs the command with a user's file of its own, on a terminal of 80 columns; gives what was printed."""
    monkeypatch.setenv("MOONWAKE_CONFIG", str(tmp_path / "user.toml"))
    monkeypatch.setenv("MOONWAKE_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> str:
        capsys.readouterr()
        assert application(["model", "show", *words]) == 0
        return capsys.readouterr().out

    return run


def test_a_known_model_is_shown_with_its_sources(show: Show) -> None:
    """In 80 columns; what is only guessed of its abilities is left out unless it is asked for."""
    out = show("anthropic/claude-haiku-5-5")
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "1,000,000 tokens" in out
    assert "above 100,000 tokens" in out
    assert "the catalog, of this model" in out
    assert "abilities.stream_usage" not in out
    assert "abilities.stream_usage" in show("anthropic/claude-haiku-5-5", "--all")


def test_settings_outrank_the_catalog_and_say_so(show: Show, tmp_path: Path) -> None:
    (tmp_path / "user.toml").write_text(
        '[models."anthropic/claude-haiku-5-5"]\nwindow = 50000\nabilities.images = false\nprice.cache_read = 0.5\n'
    )
    facts = json.loads(show("anthropic/claude-haiku-5-5", "--json"))["facts"]
    assert facts["window"] == {"value": 50_000, "from": "settings"}
    assert facts["abilities.images"] == {"value": False, "from": "settings"}
    assert facts["price"]["value"]["cache_read"] == 0.5
    assert facts["price"]["value"]["plain"] == 0.1


def test_short_names_are_understood(show: Show) -> None:
    """A provider means its usual model; an id alone is looked for."""
    assert show("anthropic").startswith("anthropic/claude-")
    assert show("claude-haiku-5-5").startswith("anthropic/claude-haiku-5-5\n")
    with pytest.raises(MoonwakeError, match="PROVIDER/ID"):
        show("no-such-model")


def test_what_is_guessed_resold_or_out_of_reach_is_said_first(show: Show, tmp_path: Path) -> None:
    (tmp_path / "user.toml").write_text('[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\n')
    assert "does not know it" in show("mine/some")
    resold = " ".join(show("openrouter/anthropic/claude-sonnet-5.5").split())  # it may be wrapped anywhere
    assert "those of anthropic/claude-sonnet-5-5" in resold
    assert "only the protocol google_interactions" in " ".join(show("google/deep-research-preview-04-2026").split())

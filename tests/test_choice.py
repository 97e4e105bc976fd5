"""Which model answers, and what is said when none can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.choice import Surroundings, WeightsMissing, choose_model
from runtime.config import load_config
from runtime.errors import ConfigError, ModelUnavailable
from runtime.providers.admission import Limits
from runtime.providers.local import is_installed
from runtime.providers.weights import use_model
from tests.providers.local_files import write_gguf
from tests.servers import Connection, Seen, serve


def around(
    tmp_path: Path, *, environ: dict[str, str] | None = None, flags: dict[str, Any] | None = None, ports: Any = ()
) -> Surroundings:
    config = load_config(tmp_path, environ or {}, flags or {}, user_file=tmp_path / "no-user.toml")
    return Surroundings(config, environ or {}, ports, cache=tmp_path / "cache")


async def models(seen: Seen, connection: Connection) -> None:
    if seen.path == "/v1/models":
        await connection.respond(body={"object": "list", "data": [{"id": "qwen3:8b", "object": "model"}]})
    else:
        await connection.respond(404)


async def test_what_is_asked_for_comes_before_any_key(tmp_path: Path) -> None:
    environ = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    chosen = await choose_model(around(tmp_path, environ=environ), "openai/gpt-6.1-sol")
    assert chosen.name == "openai/gpt-6.1-sol"
    assert chosen.why == "asked for"


async def test_the_config_comes_before_the_keys_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "moonwake.toml").write_text('model = "openai/gpt-6.1-sol"\n')
    chosen = await choose_model(around(tmp_path, environ={"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}))
    assert chosen.info.provider == "openai"
    assert "moonwake.toml" in chosen.why


@pytest.mark.parametrize(
    ("variables", "provider"),
    [
        (["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "anthropic"),
        (["OPENAI_API_KEY"], "openai"),
        (["DEEPSEEK_API_KEY"], "deepseek"),
        (["MINIMAX_API_KEY"], "minimax"),
    ],
)
async def test_a_key_in_the_environment_chooses_its_provider(
    tmp_path: Path, variables: list[str], provider: str
) -> None:
    chosen = await choose_model(around(tmp_path, environ=dict.fromkeys(variables, "k")))
    assert chosen.info.provider == provider
    assert f"{variables[-1]} is set" == chosen.why


async def test_an_empty_key_is_no_key(tmp_path: Path) -> None:
    async with serve(models) as server:
        chosen = await choose_model(
            around(tmp_path, environ={"ANTHROPIC_API_KEY": "  "}, ports=(("ollama", server.port),))
        )
    assert chosen.name == "ollama/qwen3:8b"


async def test_a_server_on_this_machine_answers_when_no_key_is_set(tmp_path: Path) -> None:
    async with serve(models) as server:
        chosen = await choose_model(around(tmp_path, ports=(("ollama", server.port),)))
    assert chosen.name == "ollama/qwen3:8b"
    assert server.url in chosen.why
    assert chosen.info.price is not None and chosen.info.price.plain == 0


async def test_a_local_model_can_be_asked_for_by_its_name_alone(tmp_path: Path) -> None:
    async with serve(models) as server:
        chosen = await choose_model(
            around(tmp_path, environ={"OPENAI_API_KEY": "k"}, ports=(("ollama", server.port),)), "qwen3:8b"
        )
    assert chosen.name == "ollama/qwen3:8b"


async def test_a_missing_key_names_its_variable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="set ANTHROPIC_API_KEY"):
        await choose_model(around(tmp_path), "anthropic")


async def test_an_unknown_model_names_near_ones(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"gpt-6\.1-sol"):
        await choose_model(around(tmp_path), "gpt-6.1-soul")


async def test_a_provider_of_ones_own_needs_no_key(tmp_path: Path) -> None:
    flags = {"providers.mine.base_url": "http://127.0.0.1:1/v1"}
    chosen = await choose_model(around(tmp_path, flags=flags), "mine/some-model")
    assert (chosen.info.provider, chosen.info.id, chosen.info.wire) == ("mine", "some-model", "openai_chat")
    with pytest.raises(ConfigError, match="mine/MODEL"):
        await choose_model(around(tmp_path, flags=flags), "mine")


async def test_settings_of_a_model_override_the_catalog(tmp_path: Path) -> None:
    (tmp_path / "moonwake.toml").write_text('[models."some-model"]\nwindow = 5000\nmax_output = 700\ntools = false\n')
    flags = {"providers.mine.base_url": "http://127.0.0.1:1/v1"}
    info = (await choose_model(around(tmp_path, flags=flags), "mine/some-model")).info
    assert (info.window, info.max_output, info.abilities.tools) == (5000, 700, False)


async def test_without_anything_the_embedded_model_is_wanted_and_its_command_named(tmp_path: Path) -> None:
    if is_installed():
        with pytest.raises(WeightsMissing, match="moonwake model get smollm2"):
            await choose_model(around(tmp_path))
    else:
        with pytest.raises(ModelUnavailable, match="ANTHROPIC_API_KEY"):
            await choose_model(around(tmp_path))


@pytest.mark.skipif(not is_installed(), reason="the embedded model is not installed")
async def test_the_full_name_of_the_small_model_is_advised_by_the_name_that_gets_it(tmp_path: Path) -> None:
    with pytest.raises(WeightsMissing, match=r"moonwake model get smollm2$"):
        await choose_model(around(tmp_path), "local/smollm2-135m")


@pytest.mark.skipif(not is_installed(), reason="the embedded model is not installed")
async def test_a_chosen_file_is_found_by_the_name_that_a_session_keeps_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a path, which might lead elsewhere by then."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    use_model(write_gguf(tmp_path / "own.gguf"))
    chosen = await choose_model(around(tmp_path), "local")
    assert chosen.name == "local/own"
    assert (await choose_model(around(tmp_path), chosen.name)).name == "local/own"


async def test_the_limits_of_a_provider_are_those_of_the_config(tmp_path: Path) -> None:
    """They hold at the one gate of its key, whichever of its models is chosen."""
    (tmp_path / "moonwake.toml").write_text("[providers.openai]\nconcurrency = 3\nrequests_per_minute = 50\n")
    surroundings = around(tmp_path, environ={"OPENAI_API_KEY": "k"})
    chosen = [await choose_model(surroundings, f"openai/{model}") for model in ("gpt-6.1-sol", "gpt-other")]
    gates = [each.provider.provider.gate for each in chosen]  # type: ignore[attr-defined]  # behind the retries
    assert gates[0] is gates[1]
    assert gates[0].admission.limits == Limits(concurrency=3, requests_per_minute=50)

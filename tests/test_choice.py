"""Which model answers, and what is said when none can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from governors.messages import Text, UserMessage
from governors.wire import WIRES
from runtime.choice import Surroundings, WeightsMissing, choose_model
from runtime.config import load_config
from runtime.errors import ConfigError, ModelUnavailable
from runtime.providers.admission import Limits
from runtime.providers.base import Finished, Request
from runtime.providers.local import is_installed
from runtime.providers.weights import use_model
from tests.providers.local_files import write_gguf
from tests.providers.response_events import response, said
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


async def test_what_the_server_of_ones_own_tells_is_asked_for_where_nothing_else_does(tmp_path: Path) -> None:
    """With its key; what the settings say comes first, and a server that cannot be asked leaves the guess."""

    async def gateway(seen: Seen, connection: Connection) -> None:
        if (seen.path, seen.headers.get("authorization")) == ("/v1/models", "Bearer secret"):
            listed = [{"id": "big", "context_length": 50_000}, {"id": "other"}]
            await connection.respond(body={"object": "list", "data": listed})
        else:
            await connection.respond(404)

    async with serve(gateway) as server:
        flags = {"providers.mine.base_url": f"{server.url}/v1", "providers.mine.key_env": "MINE"}
        mine = around(tmp_path, environ={"MINE": "secret"}, flags=flags)
        info = (await choose_model(mine, "mine/big")).info
        assert (info.window, info.guessed) == (50_000, False)
        assert (await choose_model(mine, "mine/other")).info.guessed
        keyless = around(tmp_path, flags=flags)
        assert (await choose_model(keyless, "mine/big")).info.window == 32_768
        asked = len(server.seen)
        (tmp_path / "moonwake.toml").write_text('[models."mine/big"]\nwindow = 9000\n')
        set_ = around(tmp_path, environ={"MINE": "secret"}, flags=flags)
        assert (await choose_model(set_, "mine/big")).info.window == 9_000
        assert len(server.seen) == asked


@pytest.mark.parametrize(
    ("settings", "model", "wire"),
    [
        ("", "openai/gpt-6.1-sol", "openai_responses"),
        ('[providers.openai]\nwire = "openai_chat"', "openai/gpt-6.1-sol", "openai_chat"),
        ('[models."openai/gpt-6.1-sol"]\nwire = "openai_chat"', "openai/gpt-6.1-sol", "openai_chat"),
        ('[providers.openai]\nbase_url = "http://127.0.0.1:1/v1"', "openai/gpt-6.1-sol", "openai_chat"),
        ('[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"', "mine/some", "openai_chat"),
        (
            '[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\nwire = "openai_responses"\n'
            '[models."mine/other"]\nwire = "anthropic"',
            "mine/some",
            "openai_responses",
        ),
        (
            '[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\nwire = "openai_responses"\n'
            '[models."mine/some"]\nwire = "anthropic"',
            "mine/some",
            "anthropic",
        ),
    ],
)
async def test_a_model_is_spoken_to_as_its_server_speaks_or_as_one_says(
    tmp_path: Path, settings: str, model: str, wire: str
) -> None:
    (tmp_path / "no-user.toml").write_text(settings)  # a project may set no addresses
    chosen = await choose_model(around(tmp_path, environ={"OPENAI_API_KEY": "k"}), model)
    assert chosen.info.wire == wire


async def test_openais_own_models_answer_over_responses(tmp_path: Path) -> None:
    """The whole way: choice, encoder, provider, on the path that the wire says."""
    (tmp_path / "moonwake.toml").write_text('[models."openai/gpt-6.1-sol"]\nwire = "openai_responses"')
    answer = response([said("hello")])

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.respond(body=answer)

    async with serve(handle) as server:
        environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"}
        chosen = await choose_model(around(tmp_path, environ=environ), "openai/gpt-6.1-sol")
        wire = WIRES[chosen.info.wire]
        parts = wire.encode([UserMessage((Text("hi"),))], system="be brief", tools=(), abilities=chosen.info.abilities)
        body = wire.body(parts, model=chosen.info.id, max_output=99, abilities=chosen.info.abilities)
        async with chosen.provider.stream(Request.of(chosen.info, body)) as events:
            last = [event async for event in events][-1]
        await chosen.provider.close()
    assert isinstance(last, Finished) and last.problem is None
    assert last.message.text == "hello"
    assert [seen.path for seen in server.seen] == ["/v1/responses"]


async def test_a_model_that_speaks_nothing_of_ours_is_refused_in_words(tmp_path: Path) -> None:
    model = "google/deep-research-preview-04-2026"
    environ = {"GEMINI_API_KEY": "k"}
    with pytest.raises(ModelUnavailable, match=r"google_interactions alone.*set wire in \[models"):
        await choose_model(around(tmp_path, environ=environ), model)
    (tmp_path / "moonwake.toml").write_text(f'[models."{model}"]\nwire = "openai_chat"\n')
    assert (await choose_model(around(tmp_path, environ=environ), model)).info.wire == "openai_chat"


async def test_a_server_that_is_found_may_be_asked_over_another_protocol(tmp_path: Path) -> None:
    """By a setting of the kind of server, or of the model, without an address."""
    async with serve(models) as server:
        ports = (("ollama", server.port),)
        for settings in ("[providers.ollama]", '[models."ollama/qwen3:8b"]'):
            (tmp_path / "moonwake.toml").write_text(f'{settings}\nwire = "openai_responses"\n')
            for wanted in (None, "ollama/qwen3:8b"):
                chosen = await choose_model(around(tmp_path, ports=ports), wanted)
                assert (chosen.name, chosen.info.wire) == ("ollama/qwen3:8b", "openai_responses")


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

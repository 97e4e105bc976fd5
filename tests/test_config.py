"""Settings: five layers, strict keys and types, and a project that cannot loosen confinement."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.config import Config, load_config, user_config_file
from runtime.config.known import annotation_at, known_keys
from runtime.errors import ConfigError


class Place:
    """A workspace and a user's file in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "project"
        self.workspace.mkdir()
        self.project = self.workspace / "moonwake.toml"
        self.user = folder / "user.toml"

    def load(
        self,
        user: str = "",
        project: str = "",
        environ: dict[str, str] | None = None,
        flags: dict[str, Any] | None = None,
    ) -> Config:
        self.user.write_text(user)
        self.project.write_text(project)
        return load_config(self.workspace, environ or {}, flags or {}, self.user)

    def problem(self, *layers: Any, **named: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(*layers, **named)
        return str(caught.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_defaults_need_no_file(tmp_path: Path) -> None:
    """Without any file or variable the defaults hold, and say so."""
    config = load_config(tmp_path, {}, {}, tmp_path / "none.toml")
    assert (config.model, config.tools.exec, config.limits.max_steps) == (None, "sandbox", 50)
    assert str(config.origin_of("tools.exec")) == "the default"


def test_later_layers_win_and_each_value_knows_its_origin(place: Place) -> None:
    """Defaults < user < project < environment < flags, key by key."""
    config = place.load(
        user='model = "u/u"\nthinking = "low"\nagent = "u"\n[limits]\nmax_steps = 1',
        project='model = "p/p"\nthinking = "high"\nagent = "p"',
        environ={"MOONWAKE_MODEL": "e/e", "MOONWAKE_THINKING": "max", "PATH": "/bin"},
        flags={"model": "f/f", "agent": None},
    )
    assert (config.model, config.thinking, config.agent, config.limits.max_steps) == ("f/f", "max", "p", 1)
    assert [config.origin_of(key).layer for key in ("model", "thinking", "agent", "limits.max_steps")] == [
        "flag",
        "environment",
        "project",
        "user",
    ]
    assert str(config.origin_of("model")) == "flag --model"
    assert str(config.origin_of("thinking")) == "environment variable MOONWAKE_THINKING"
    assert str(config.origin_of("agent")) == str(place.project)


def test_tables_of_providers_and_models_merge(place: Place) -> None:
    """A later layer changes one key of a table and leaves the others."""
    config = place.load(
        user='[providers.ollama]\nbase_url = "http://127.0.0.1:1/v1/"\n[models."a/b.c"]\nwindow = 9000',
        project='[models."a/b.c"]\ntools = false\nprice = { plain = 3, output = 15.5 }',
        environ={"MOONWAKE_PROVIDERS__OLLAMA__WIRE": "openai_chat"},
    )
    assert config.providers["ollama"].base_url == "http://127.0.0.1:1/v1"
    assert config.providers["ollama"].wire == "openai_chat"
    model = config.models["a/b.c"]
    assert (model.window, model.tools, model.price and model.price.output) == (9000, False, 15.5)
    assert config.origin_of("models.a/b.c.window").layer == "user"


def test_environment_nests_and_reads_types(place: Place) -> None:
    """`__` goes one table down; text becomes what the key expects; MOONWAKE_EXEC is a short name."""
    config = place.load(
        environ={
            "MOONWAKE_TOOLS__TIMEOUT": "30",
            "MOONWAKE_TOOLS__NETWORK": "yes",
            "MOONWAKE_TOOLS__DISABLED": "grep, exec,",
            "MOONWAKE_EXEC": "unconfined",
            "MOONWAKE_AGENT": "",
            "MOONWAKE_CONFIG": "elsewhere",
        }
    )
    assert config.tools.model_dump() == {
        "exec": "unconfined",
        "network": True,
        "timeout": 30.0,
        "disabled": ("grep", "exec"),
    }
    assert config.agent == "assistant"


def test_full_variable_wins_over_its_short_name(place: Place) -> None:
    """MOONWAKE_TOOLS__EXEC is more exact than MOONWAKE_EXEC."""
    environ = {"MOONWAKE_TOOLS__EXEC": "off", "MOONWAKE_EXEC": "unconfined"}
    assert place.load(environ=environ).tools.exec == "off"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('modle = "x"', ['unknown key "modle"', "did you mean model?"]),
        ('exec = "off"', ['unknown key "exec"', "did you mean tools.exec?"]),
        ("[tools]\ntimout = 1", ['unknown key "tools.timout"', "did you mean tools.timeout?"]),
        ("[tool]\ntimeout = 1", ['unknown key "tool"', "did you mean tools?"]),
        ('[providers.x]\napi_key = "sk-1"', ['"providers.x.api_key"', "providers.x.key_env"]),
        ("[models.x]\nwindows = 5", ['"models.x.windows"', "models.x.window?"]),
        ('[tools]\ntimeout = "30"', ['tools.timeout should be a number, not the text "30"']),
        ("[tools]\nnetwork = 1", ["tools.network should be true or false, not the number 1"]),
        ('[tools]\nexec = "on"', ['one of "off", "sandbox" or "unconfined"', 'not the text "on"']),
        ('[tools]\ndisabled = "grep"', ["tools.disabled should be a list"]),
        ("[limits]\nmax_steps = 0", ["limits.max_steps should be at least 1, not the number 0"]),
        ("[limits]\nmax_steps = true", ["limits.max_steps should be a whole number, not true"]),
        ("[tools]\ntimeout = inf", ["a finite number"]),
        ("tools = 3", ["tools should be a table, not the number 3"]),
        ('model = "a b"', ['"provider/model"', 'not the text "a b"']),
        ('[providers.x]\nbase_url = "ftp://x"', ['begins with "http://"']),
        ('[providers.x]\nbase_url = "https://me:secret@host"', ["without a user name or password"]),
        ("[models.x]\nwindow = 1000\nmax_output = 1000", ["leaves nothing of its window (1,000)"]),
    ],
)
def test_wrong_settings_name_file_key_and_way_out(place: Place, text: str, said: list[str]) -> None:
    """An error names the file, the key, what was expected and what came, or the nearest known key."""
    problem = place.problem(user=text)
    assert str(place.user) in problem
    for part in said:
        assert part in problem


def test_all_problems_come_at_once(place: Place) -> None:
    """Several wrong settings of several layers are one error with a line each."""
    problem = place.problem('modle = "x"', "[tools]\ntimeout = []", {"MOONWAKE_MODLE": "y"}, {"limits.max_step": 3})
    assert problem.startswith("4 settings are wrong:")
    assert "environment variable MOONWAKE_MODLE" in problem
    assert "flag --max-step" in problem


def test_a_pasted_key_is_never_echoed(place: Place) -> None:
    """A secret where a variable's name belongs is refused without being printed."""
    text = '[providers.x]\nkey_env = "sk-very-secret"\nbase_url = "sk-very-secret"\napi_key = "sk-very-secret"'
    problem = place.problem(user=text)
    assert "not the key itself" in problem
    assert "very-secret" not in problem


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = = 1", "line 1, column 5"),
        ('model = "x"\na = [1,', "line 2, column 8"),
        ("x = 1\nx = 2", "line 2"),
    ],
)
def test_broken_toml_names_line_and_column(place: Place, text: str, where: str) -> None:
    """A file that does not parse is named with the place of the fault."""
    problem = place.problem(user=text)
    assert str(place.user) in problem
    assert where in problem


def test_unreadable_files_say_what_to_do(place: Place) -> None:
    """Not UTF-8, far too large, a folder, a pipe, nested without end: each is an error, none hangs."""

    def project_problem() -> str:
        with pytest.raises(ConfigError) as caught:
            load_config(place.workspace, {}, {}, place.user)
        return str(caught.value)

    place.project.write_bytes(b'agent = "a"\nmodel = "\xff"')
    assert "line 2: not UTF-8" in project_problem()
    place.project.write_bytes(b"#" * 1_100_000)
    assert "larger than" in project_problem()
    place.project.write_text("a = " + "[" * 100_000)
    assert "nested too deep" in project_problem()
    place.project.unlink()
    os.mkfifo(place.project)
    assert "not a file" in project_problem()
    place.project.unlink()
    place.project.mkdir()
    assert "not a file" in project_problem()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[tools]\nexec = "unconfined"', "tools.exec"),
        ("[tools]\nnetwork = true", "tools.network"),
        ('[providers.anthropic]\nbase_url = "https://elsewhere.example"', "providers.anthropic.base_url"),
        ('[providers.anthropic]\nbase_url = "http://localhost:1"', "providers.anthropic.base_url"),
        ('[providers.ollama]\nbase_url = "https://elsewhere.example"', "providers.ollama.base_url"),
        ('[providers.ollama]\nbase_url = "http://localhost@elsewhere.example"', "providers.ollama.base_url"),
        ('[providers.ollama]\nkey_env = "HOME"', "providers.ollama.key_env"),
        ('[local]\nmodel = "models/x.gguf"', "local.model"),
    ],
)
def test_project_cannot_loosen_confinement(place: Place, text: str, key: str) -> None:
    """What opens the sandbox or redirects keys is refused in a project and names the user's file instead."""
    problem = place.problem(project=text)
    assert str(place.project) in problem
    assert key in problem
    if "@" not in text:
        assert str(place.user) in problem
        assert place.load(user=text).origin_of(key).layer == "user"


def test_project_can_tighten(place: Place) -> None:
    """The tighter of user and project holds; disabled tools add up; a note says what was not followed."""
    config = place.load(
        user='[tools]\nexec = "off"\ndisabled = ["grep"]', project='[tools]\nexec = "sandbox"\ndisabled = ["x"]'
    )
    assert config.tools.exec == "off"
    assert config.tools.disabled == ("grep", "x")
    assert len(config.notes) == 1
    assert str(place.user) in config.notes[0]
    assert place.load(user='[tools]\nexec = "unconfined"', project='[tools]\nexec = "off"').tools.exec == "off"


def test_flags_may_loosen_what_a_project_set(place: Place) -> None:
    """The person at the keyboard decides last."""
    config = place.load(project='[tools]\nexec = "off"', flags={"tools.exec": "unconfined"})
    assert config.tools.exec == "unconfined"


def test_config_is_frozen(place: Place) -> None:
    """Settings do not change under a running agent."""
    with pytest.raises(ValueError, match="frozen"):
        place.load().tools.timeout = 3


def test_settings_list_every_value_with_origin(place: Place) -> None:
    """`settings()` is what doctor prints."""
    config = place.load(user='[providers.x]\nkey_env = "X_KEY"')
    listed = {key: (value, origin.layer) for key, value, origin in config.settings()}
    assert listed["providers.x.key_env"] == ("X_KEY", "user")
    assert listed["limits.max_steps"] == (50, "default")


def test_every_known_key_has_an_annotation() -> None:
    """The list of keys that errors draw on matches the schema."""
    assert all(annotation_at(key.split(".")) is not None for key in known_keys())
    assert "models.NAME.price.cache_read" in known_keys()


def test_user_file_comes_from_the_environment_or_the_platform(tmp_path: Path) -> None:
    """MOONWAKE_CONFIG names the user's file; else it is called moonwake.toml in the platform's folder."""
    assert user_config_file({"MOONWAKE_CONFIG": str(tmp_path / "mine.toml")}) == tmp_path / "mine.toml"
    assert user_config_file({}).name == "moonwake.toml"


Leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
Plain = Leaf | st.lists(Leaf, max_size=2) | st.dictionaries(st.text(max_size=8), Leaf, max_size=2)


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first draw builds its tables of characters
@given(
    st.dictionaries(
        st.sampled_from([*known_keys(), "tools", "models", "providers.x", "tools.exec.y", "", "."]), Plain, max_size=4
    )
)
def test_any_flags_load_or_raise_config_error(flags: dict[str, Any]) -> None:
    """Whatever comes in as flags, the outcome is settings or a `ConfigError` with a sentence."""
    nowhere = Path("does-not-exist")
    try:
        load_config(nowhere, {}, flags, nowhere / "user.toml")
    except ConfigError as error:
        assert str(error)


def test_everything_of_a_model_can_be_overridden(place: Place) -> None:
    """Abilities by their own names, a price with tiers, and what the cache keeps; layers are merged key by key."""
    config = place.load(
        user='[models."a/b".abilities]\nimages = true\nefforts = ["low", "high"]\n'
        '[models."a/b".cache]\nlifetimes = [60, 600]',
        project='[models."a/b"]\nabilities.max_images = 4\n'
        "price = { plain = 1, tiers = [{ above = 1000, plain = 2 }, { above = 5000, plain = 4, output = 9 }] }",
    )
    told = config.models["a/b"].model_dump(exclude_none=True)
    assert told["abilities"] == {"images": True, "efforts": ("low", "high"), "max_images": 4}
    assert told["cache"] == {"lifetimes": (60, 600)}
    assert [tier["above"] for tier in told["price"]["tiers"]] == [1000, 5000]
    assert {key: value for key, value, _ in config.settings()}["models.a/b.abilities.max_images"] == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[models.x.abilities]\nimags = true",
            "did you mean models.x.abilities.images?",
        ),
        ("[models.x.abilities]\nimages = 3", "models.x.abilities.images should be true or false"),
        ('[models.x.abilities]\nid_pattern = "("', "a regular expression"),
        ("[models.x.cache]\nlifetimes = [600, 60]", "seconds that rise"),
        ("[models.x.price]\ntiers = [{ above = 5 }]", "models.x.price.tiers"),
        ("[models.x.price]\nplains = 5", "models.x.price.plain?"),
    ],
)
def test_wrong_overrides_of_a_model_are_named(place: Place, text: str, said: str) -> None:
    """With the key, and the nearest one for what is mistyped."""
    assert said in place.problem(user=text)


def test_a_project_reads_skills_from_its_own_folders_only(place: Place) -> None:
    """What lies elsewhere is nobody's business but the user's; the user's folders stay beside the project's."""
    config = place.load(user='[skills]\nfolders = ["~/.claude/skills"]', project='[skills]\nfolders = [".pi/skills"]')
    assert config.skills.folders == ("~/.claude/skills", ".pi/skills")
    for folder in ("~/notes", "/etc", "a/../../b", ""):
        assert "outside the workspace" in place.problem(project=f'[skills]\nfolders = ["{folder}"]')

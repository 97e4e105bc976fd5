"""Where hooks come from: packages, files that were trusted, and programs."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from runtime import Hook, Runtime, Scripted
from runtime.config import load_config
from runtime.errors import ConfigError
from runtime.hooks.contract import hook_of
from runtime.hooks.loading import checked_hooks, find_hooks

CODE = "def before_tool(context, use):\n    return None\n"


def written(folder: Path, name: str, code: str = CODE) -> str:
    """The hash of a hook that is put into the workspace `folder`."""
    file = folder / "hooks" / f"{name}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(code)
    return hashlib.sha256(code.encode()).hexdigest()


def test_a_file_runs_only_as_it_was_trusted(tmp_path: Path) -> None:
    """Not before, and not after a change; the note has the hash and the place to put it."""
    digest = written(tmp_path, "mark", "import pathlib\npathlib.Path(__file__ + '.ran').touch()\n" + CODE)
    hooks, notes = find_hooks(tmp_path, (), "user.toml")
    assert hooks == ()
    assert "hooks/mark.py was not loaded" in notes[0] and digest in notes[0] and "user.toml" in notes[0]
    assert not (tmp_path / "hooks" / "mark.py.ran").exists()
    hooks, notes = find_hooks(tmp_path, (digest.upper(),), "user.toml")
    assert [hook.name for hook in hooks] == ["mark"] and notes == ()
    assert (tmp_path / "hooks" / "mark.py.ran").exists()
    written(tmp_path, "mark", CODE + "# changed\n")
    assert find_hooks(tmp_path, (digest,), "user.toml")[0] == ()


def test_what_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    """Bad syntax, an exception, an exit, nothing of a hook in it; the others are loaded."""
    trust = [
        written(tmp_path, "syntax", CODE + "def ("),
        written(tmp_path, "raises", CODE + "1 / 0"),
        written(tmp_path, "exits", CODE + "raise SystemExit(3)"),
        written(tmp_path, "other", "# on_event\nx = 1\n"),
        written(tmp_path, "good"),
        written(tmp_path, "_private"),
        written(tmp_path, "bad name"),
    ]
    written(tmp_path, "cookiecutter", "print('no hook of ours')\n")
    os.mkfifo(tmp_path / "hooks" / "pipe.py")
    hooks, notes = find_hooks(tmp_path, trust, "user.toml")
    assert [hook.name for hook in hooks] == ["good"]
    told = [note.split(" was not loaded: ")[0].removeprefix("The hook hooks/") for note in notes]
    assert told == ["bad name.py", "exits.py", "other.py", "pipe.py", "raises.py", "syntax.py"]


def test_packages_bring_hooks_by_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, before those of the workspace; a class is made into an object; a disabled one is not even imported."""
    site = tmp_path / "site"
    info = site / "garden-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: garden\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[moonwake.hooks]\nwater = garden_hooks:Water\nbeds = garden_hooks\n"
        "broken = garden_hooks:nothing\noff = no_module\n"
    )
    (site / "garden_hooks.py").write_text(f"{CODE}\nclass Water:\n    def on_event(self, context, event): ...\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    digest = written(tmp_path, "a")
    hooks, notes = find_hooks(tmp_path, (digest,), "user.toml", {"off"})
    assert [hook.name for hook in hooks] == ["beds", "water", "a"]
    assert len(notes) == 1 and notes[0].startswith("The hook broken of the package garden was not loaded")


@pytest.mark.parametrize(
    ("thing", "why"),
    [
        (object(), "none of the functions"),
        (Hook, "name"),
        ("text", "none of the functions"),
        (3, "none of the functions"),
    ],
)
def test_what_is_no_hook_is_a_type_error(thing: object, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        checked_hooks([thing])


def test_names_of_hooks_are_checked() -> None:
    """They stand in the log and before what a model reads."""
    for name in ("", "a b", "x" * 65, "]", "shell"):
        with pytest.raises(ValueError, match="hook"):
            Hook(name, on_event=print)
    with pytest.raises(ValueError, match="two hooks"):
        checked_hooks([Hook("a", on_event=print), Hook("a", on_event=print)])
    with pytest.raises(TypeError, match="no function"):
        Hook("a", on_event=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout"):
        Hook("a", on_event=print, timeout=0)

    class Own:
        name = "own"
        timeout = 2

        def on_event(self, context: object, event: object) -> None: ...

    assert (hook_of(Own()).name, hook_of(Own).timeout) == ("own", 2)


async def test_untrusted_hooks_are_told_when_a_runtime_opens(tmp_path: Path) -> None:
    """With the person's own file as the place to allow them; a hook that is passed wins over one of its name."""
    user = tmp_path / "mine.toml"
    digest = written(tmp_path, "mark")
    environ = {"MOONWAKE_CONFIG": str(user)}
    async with Runtime.open(tmp_path, model=Scripted(), environ=environ) as runtime:
        assert any("hooks/mark.py" in note and str(user) in note for note in runtime.notes)
    user.write_text(f'[hooks]\ntrust = ["{digest}"]\n')
    async with Runtime.open(tmp_path, model=Scripted(), environ=environ) as runtime:
        assert not any("hooks/mark.py" in note for note in runtime.notes)
        agent = await runtime.supervisor.agent("assistant")
        assert [hook.name for hook in agent.equipment.hooks] == ["mark"]
    own = Hook("mark", on_event=print)
    async with Runtime.open(tmp_path, model=Scripted(), environ=environ, hooks=[own]) as runtime:
        agent = await runtime.supervisor.agent("assistant")
        assert agent.equipment.hooks == (own,)


def test_a_project_cannot_trust_its_own_hooks(tmp_path: Path) -> None:
    """It may turn hooks and pictures off, not on."""
    project = tmp_path / "moonwake.toml"
    user = tmp_path / "user.toml"
    project.write_text(f'[hooks]\ntrust = ["{"a" * 64}"]\n')
    with pytest.raises(ConfigError, match=r"hooks\.trust"):
        load_config(tmp_path, {}, {}, user)
    project.write_text('images = true\n[hooks]\ndisabled = ["b"]\n')
    user.write_text('images = false\n[hooks]\ndisabled = ["a"]\n')
    config = load_config(tmp_path, {}, {}, user)
    assert (config.images, config.hooks.disabled) == (False, ("a", "b"))

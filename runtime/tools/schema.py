"""From a function's signature to a JSON Schema, and from a model's arguments back to Python values.

One pydantic model per function does both, so what the model was told and what is accepted cannot differ. Its
fields have names of their own and the parameters are aliases: a parameter may be called `schema` or `copy`.
Only arguments that came are handed on, so defaults are the function's own.
"""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from ..errors import ToolError
from .base import ToolContext

_MOST_PROBLEMS = 10
_SHOWN_VALUE = 80
_JSON_TYPES: dict[type, str] = {
    dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number",
}  # fmt: skip


class _Schema(GenerateJsonSchema):
    # A default that JSON cannot hold is left out; the function still has it.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - pydantic's own name and form


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one function: `schema` for the model, `contexts` the names that get the `ToolContext`."""

    model: type[BaseModel]
    names: Mapping[str, str]  # field of the pydantic model -> parameter of the function
    contexts: tuple[str, ...]
    schema: Mapping[str, Any]

    def validate(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as Python values, by parameter name; raises `ToolError` naming each wrong one."""
        try:
            valid = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            raise ToolError(explain(tool, error, tuple(self.names.values()))) from None
        return {self.names[name]: getattr(valid, name) for name in self.names if name in valid.model_fields_set}


def read_parameters(function: Callable[..., Any], name: str, descriptions: Mapping[str, str]) -> Parameters:
    """The parameters of `function`; raises `TypeError` if a model could not fill them by name and type."""
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    contexts: list[str] = []
    hints = _hints(function, name)
    for parameter in inspect.signature(function).parameters.values():
        _check(parameter, hints, name)
        hint = hints[parameter.name]
        if hint is ToolContext or ToolContext in typing.get_args(hint):
            contexts.append(parameter.name)
            continue
        field = f"argument_{len(fields)}"
        names[field] = parameter.name
        fields[field] = (hint, _field(parameter, hint, descriptions))
    try:
        model: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        schema = model.model_json_schema(schema_generator=_Schema)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise TypeError(f"tool {name}: a parameter's type has no JSON form: {error.message}") from error
    return Parameters(model, names, tuple(contexts), _without_titles(schema))


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"tool {name}: a type hint cannot be resolved ({error}); define or import that type at module level"
        ) from error


def _check(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> None:
    where = f"tool {name}, parameter {parameter.name}"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(f"{where}: a model fills parameters by name, so *args and **kwargs cannot be used")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(f"{where}: a model fills parameters by name, so it cannot be positional-only")
    if parameter.name not in hints:
        raise TypeError(f"{where}: it has no type hint, so the model cannot be told what to send; add one")
    if isinstance(parameter.default, FieldInfo):
        raise TypeError(f"{where}: write `Annotated[TYPE, Field(...)] = DEFAULT` instead of `= Field(...)`")


def _field(parameter: inspect.Parameter, hint: Any, descriptions: Mapping[str, str]) -> Any:
    settings: dict[str, Any] = {"alias": parameter.name}
    if parameter.name in descriptions and FieldInfo.from_annotation(hint).description is None:
        settings["description"] = descriptions[parameter.name]
    if parameter.default is not parameter.empty:
        settings["default"] = parameter.default
    return Field(**settings)


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` without the titles pydantic adds: they repeat the names and cost tokens in every request."""
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs", "patternProperties"):
            plain[key] = {name: _without_titles(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties", "not", "contains", "propertyNames"):
            plain[key] = _without_titles(value) if isinstance(value, dict) else value
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            plain[key] = [_without_titles(inner) for inner in value]
        else:
            plain[key] = value
    plain.pop("discriminator", None)  # OpenAPI's, not JSON Schema's; `oneOf` with constants says the same
    if plain.get("type") == "object":
        plain.setdefault("properties", {})
    return plain


def explain(tool: str, error: ValidationError, known: tuple[str, ...]) -> str:
    """One line for each wrong argument: its name, what was expected, what came."""
    problems = error.errors(include_url=False)
    lines = [_problem(problem, known) for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f"and {len(problems) - _MOST_PROBLEMS} more")
    return f"{tool} was not run, its arguments are wrong:\n" + "\n".join(f"- {line}" for line in lines)


def _problem(problem: Any, known: tuple[str, ...]) -> str:
    path = _path(problem["loc"])
    if problem["type"] == "missing":
        return f"{path}: required, but missing"
    if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
        near = difflib.get_close_matches(path, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(known) or 'none'}"
        return f"{path}: there is no such argument; {hint}"
    message = str(problem["msg"])
    message = message.replace("Input should be", "expected", 1).removeprefix("Value error, ")
    value = problem["input"]
    kind = "null" if value is None else _JSON_TYPES.get(type(value), type(value).__name__)
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_VALUE else shown[:_SHOWN_VALUE] + "…"
    return f"{path}: {message}; got {shown} ({kind})"


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".") or "the arguments"

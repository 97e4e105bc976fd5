"""`@tool`: makes a tool of a plain function.

The model is told the function's name, its docstring and a JSON Schema of its parameters; a parameter annotated
`ToolContext` is filled by the runtime and not shown. Async functions run in the event loop, plain ones in a
worker thread. The decorated object is the tool, and can still be called like the function.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, overload

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from pydantic_core import PydanticSerializationError, to_jsonable_python

from governors.messages import ToolSpec

from ..errors import ToolError
from .base import DEFAULT_TIMEOUT, TOOL_NAME, RunTool, Tool, ToolContext, ToolOutput, text_output
from .docstring import parse_docstring
from .schema import Parameters, read_parameters

P = ParamSpec("P")
R = TypeVar("R")

_MOST_THREADS = 40
_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("moonwake_tool_threads")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool(Tool, Generic[P, R]):
    """A tool made by `@tool`. Calling it calls the function itself: no validation, no thread."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    bulky: bool = False,
    timeout: float | None = DEFAULT_TIMEOUT,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    bulky: bool = False,
    timeout: float | None = DEFAULT_TIMEOUT,
) -> Any:
    """Make a tool of a function, as `@tool` or `@tool(name=..., read_only=True, ...)`.

    `description` defaults to the docstring's prose; parameters are described by its `Args:` or `:param` lines,
    or by `Annotated[TYPE, Field(description=...)]`. `read_only`: running it twice changes nothing. `bulky`: its
    old results may be reduced to a line. `timeout` is in seconds, None for no limit. A plain (not async)
    function that is still running when the time is up is left behind in its thread, as a thread cannot be ended.

    The function returns a string, a `ToolOutput`, None, or anything JSON can hold (pydantic models and
    dataclasses too). Raises `TypeError` if a model could not call the function, `ValueError` for a bad name.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        _check_kind(function)
        called = name or function.__name__
        if not TOOL_NAME.fullmatch(called):
            raise ValueError(f"{called!r} cannot name a tool: use 1 to 64 letters, digits, _ or -")
        text = parse_docstring(function.__doc__)
        parameters = read_parameters(function, called, text.parameters)
        told = description or text.description or called.replace("_", " ")
        spec = ToolSpec(called, told, parameters.schema, read_only, bulky)
        return FunctionTool(spec, _runner(function, called, parameters), timeout, function=function)

    return decorate if function is None else decorate(function)


def _check_kind(function: Callable[..., Any]) -> None:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise TypeError(f"@tool takes a function, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"tool {function.__name__}: a generator cannot be a tool; return the whole result")


def _threads() -> anyio.CapacityLimiter:
    """Threads for plain functions, apart from those that write the log: a tool that hangs holds up tools only."""
    try:
        return _LIMITER.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_MOST_THREADS)
        _LIMITER.set(limiter)
        return limiter


def _runner(function: Callable[..., Any], name: str, parameters: Parameters) -> RunTool:
    is_async = inspect.iscoroutinefunction(function)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        values = parameters.validate(name, arguments)
        values.update(dict.fromkeys(parameters.contexts, context))
        if is_async:
            value = await function(**values)
        else:
            called = partial(function, **values)
            value = await anyio.to_thread.run_sync(called, abandon_on_cancel=True, limiter=_threads())
            if inspect.isawaitable(value):  # a plain function that wraps an async one
                value = await value
        return as_output(name, value)

    return run


def as_output(name: str, value: object) -> ToolOutput:
    """What the model reads of a function's value; raises `ToolError` for a value that has no text form."""
    if isinstance(value, ToolOutput):
        return value
    if value is None:
        return text_output("")
    if isinstance(value, str):
        return text_output(value)
    try:
        return text_output(json.dumps(value, ensure_ascii=False, default=_jsonable))
    except (TypeError, ValueError, RecursionError, PydanticSerializationError) as error:
        raise ToolError(
            f"{name} ran, but returned a value of type {type(value).__name__} that cannot be shown as text "
            f"({error}); a tool returns a string, a ToolOutput, None or a value JSON can hold"
        ) from error


def _jsonable(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("bytes are not text; decode them, or return an Image in a ToolOutput")
    return to_jsonable_python(value)

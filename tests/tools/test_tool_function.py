"""The `@tool` decorator."""

import asyncio
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from runtime.errors import ToolError
from runtime.tools.base import ToolContext, ToolOutput, text_output
from runtime.tools.function import FunctionTool, as_output, tool

from .tool_calls import Call, text_of


class Passenger(BaseModel):
    name: str
    age: int = Field(ge=0)


@dataclass
class Seat:
    row: int
    letter: Literal["A", "B"]


@tool(read_only=True, bulky=True, timeout=5)
async def book(
    passengers: list[Passenger],
    context: ToolContext,
    seat: Seat | None = None,
    kind: Literal["one-way", "return"] = "return",
    title: Annotated[str, Field(description="Shown on the ticket.", max_length=5)] = "x",
    schema: int = 1,
    model_config: bool = False,
) -> str:
    """Book a flight.

    Args:
        passengers: Who flies.
        title: Not this one.
    """
    assert isinstance(passengers[0], Passenger)
    assert seat is None or isinstance(seat, Seat)
    return f"{context.agent} {len(passengers)} {kind} {schema + 1}"


def test_schema_says_what_the_function_says() -> None:
    """Types, defaults and descriptions reach the model; the context and pydantic's titles do not."""
    spec = book.spec
    assert (spec.name, spec.description, spec.read_only, spec.bulky) == ("book", "Book a flight.", True, True)
    assert book.timeout == 5
    parameters: Mapping[str, Any] = spec.parameters
    assert list(parameters["properties"]) == ["passengers", "seat", "kind", "title", "schema", "model_config"]
    assert parameters["required"] == ["passengers"]
    assert parameters["additionalProperties"] is False
    properties = parameters["properties"]
    assert properties["passengers"]["description"] == "Who flies."
    assert properties["title"] == {
        "type": "string", "description": "Shown on the ticket.", "maxLength": 5, "default": "x",
    }  # fmt: skip
    assert properties["kind"] == {"type": "string", "enum": ["one-way", "return"], "default": "return"}
    assert properties["seat"]["default"] is None
    assert set(parameters["$defs"]["Seat"]["properties"]) == {"row", "letter"}
    assert '"title": "' not in json.dumps(parameters).replace('"title": {', "")


async def test_arguments_become_python_values(call: Call) -> None:
    """Nested models and dataclasses arrive as such, and the function's own defaults apply."""
    passengers = [{"name": "Ada", "age": 36}]
    assert await call(book, passengers=passengers, seat={"row": 3, "letter": "A"}) == "assistant 1 return 2"
    assert await call(book, passengers=passengers, schema="7", kind="one-way") == "assistant 1 one-way 8"


async def test_wrong_arguments_are_named(call: Call) -> None:
    """Each wrong argument is named with what was expected and what came."""
    said = await call(book, fails=True, passengers=[{"name": "Ada", "age": "old"}], kind="none", titel="a", seat=3)
    assert "passengers[0].age: expected a valid integer" in said
    assert "got 'old' (string)" in said
    assert "kind: expected 'one-way' or 'return'; got 'none' (string)" in said
    assert "titel: there is no such argument; did you mean title?" in said
    assert "passengers: required, but missing" in await call(book, fails=True)


def test_decorated_function_is_still_a_function() -> None:
    """Calling the tool calls the function."""

    @tool
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8
    assert isinstance(double, FunctionTool)
    assert double.spec.description == "double"


async def test_plain_functions_run_in_a_thread(call: Call) -> None:
    """The event loop is not blocked by a plain function."""

    @tool
    def where() -> str:
        return str(threading.get_ident())

    assert await call(where) != str(threading.get_ident())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"), (None, ""), ({"a": ["é", 1.5, None]}, '{"a": ["é", 1.5, null]}'),
        (Passenger(name="Ada", age=3), '{"name": "Ada", "age": 3}'), (Seat(1, "B"), '{"row": 1, "letter": "B"}'),
        ([Passenger(name="Ada", age=3)], '[{"name": "Ada", "age": 3}]'), ((1, 2), "[1, 2]"), (True, "true"),
    ],
)  # fmt: skip
def test_values_become_text(value: object, text: str) -> None:
    """Strings stay, other values are dumped as JSON."""
    assert as_output("t", value) == text_output(text)


def test_outputs_pass_unchanged() -> None:
    """A ToolOutput is the author's own last word."""
    output = ToolOutput((), is_error=True)
    assert as_output("t", output) is output


@pytest.mark.parametrize("value", [b"raw", object(), {"deep": b"raw"}, {(1, 2): 3}])
def test_values_without_text_are_refused(value: object) -> None:
    """Bytes and opaque objects give an error that names their type."""
    with pytest.raises(ToolError, match=f"type {type(value).__name__}"):
        as_output("t", value)


def unhinted(a) -> None: ...  # type: ignore[no-untyped-def]  # that is the fault under test


def star(*a: int) -> None: ...


def keywords(**a: int) -> None: ...


def positional(a: int, /) -> None: ...


def unresolved(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the fault under test


def opaque(a: asyncio.Event) -> None: ...


def misplaced(a: int = Field(1, ge=0)) -> None: ...


def generator(a: int) -> Any:
    yield a


@pytest.mark.parametrize(
    "function", [unhinted, star, keywords, positional, unresolved, opaque, misplaced, generator, Passenger, "text"]
)
def test_unusable_signatures_are_refused_at_once(function: Any) -> None:
    """What a model could not call is a TypeError where it is defined, not in the middle of a conversation."""
    with pytest.raises(TypeError):
        tool(function)


def test_bad_names_are_refused() -> None:
    """A name that some provider refuses is refused here."""
    with pytest.raises(ValueError, match="cannot name a tool"):
        tool(name="two words")(positional_ok)


def positional_ok(a: int = 1, items: list[str] = ["x"], event: Any = threading.Lock) -> str:  # noqa: B006 - under test
    """Defaults of any kind."""
    return f"{a}{items}{event is threading.Lock}"


async def test_defaults_that_json_cannot_hold_are_kept_by_the_function(call: Call) -> None:
    """Such a default is left out of the schema, without a warning, and still applies."""
    made = tool(positional_ok)
    assert "default" not in made.spec.parameters["properties"]["event"]
    assert await call(made) == "1['x']True"


async def test_text_of_is_what_the_model_reads(call: Call) -> None:
    """A tool that returns nothing reads as `(no output)`."""

    @tool
    async def nothing() -> None: ...

    assert await call(nothing) == "(no output)"
    assert text_of(text_output("a")) == "a"

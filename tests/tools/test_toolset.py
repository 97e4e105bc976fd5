"""The one place where a tool is run: it answers for whatever a tool does."""

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import pytest

from governors.messages import ToolSpec
from runtime.errors import ToolError
from runtime.tools.base import Tool, ToolContext, ToolOutput, text_output
from runtime.tools.function import tool
from runtime.tools.toolset import Toolset

from .tool_calls import text_of


def made(name: str, body: Callable[[], Awaitable[Any]], timeout: float | None = 60.0) -> Tool:
    """A tool that ignores its arguments."""

    async def run(arguments: object, context: ToolContext) -> ToolOutput:
        return cast(ToolOutput, await body())

    return Tool(ToolSpec(name, name, {"type": "object", "properties": {}}), run, timeout)


async def fine() -> ToolOutput:
    return text_output("fine")


async def outcome(body: Callable[[], Awaitable[Any]], context: ToolContext, limit: float | None = 60.0) -> ToolOutput:
    with anyio.fail_after(20):
        return await Toolset([made("probe", body, limit)]).run("probe", "{}", context)


def test_tools_are_in_the_order_of_their_names() -> None:
    """The order of definition does not reach the prompt."""
    tools = Toolset([made("b", fine), made("a", fine), made("c", fine)])
    assert [spec.name for spec in tools.specs] == ["a", "b", "c"]
    assert len(tools) == 3
    assert [one.spec.name for one in tools] == ["a", "b", "c"]
    assert tools.get("d") is None


def test_names_are_unique_and_legal() -> None:
    """Two tools of one name, and a name that providers refuse, are errors of the program."""
    with pytest.raises(ValueError, match="two tools are called 'a'"):
        Toolset([made("a", fine), made("a", fine)])
    with pytest.raises(ValueError, match="cannot name a tool"):
        Toolset([made("a b", fine)])


async def test_unknown_tool_names_the_nearest(context: ToolContext) -> None:
    """A misspelt tool is answered with what was meant, an invented one with what there is."""
    tools = Toolset([made("read_file", fine), made("write_file", fine)])
    near = await tools.run("readfile", "{}", context)
    assert near.is_error
    assert "Did you mean read_file" in text_of(near)
    assert "The tools are: read_file, write_file" in text_of(await tools.run("order_pizza", "{}", context))
    assert "no tools are on" in text_of(await Toolset().run("x\ud800", "{}", context))


async def test_broken_arguments_run_nothing(context: ToolContext) -> None:
    """A call that was cut off is told so, and the tool does not see it."""
    ran = []

    @tool
    async def probe(a: str = "") -> None:
        ran.append(a)

    output = await Toolset([probe]).run("probe", '{"a": "b', context)
    assert output.is_error
    assert "cut off" in text_of(output)
    assert ran == []


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ToolError("the file is locked"), "the file is locked"), (ValueError("bad"), "failed with ValueError: bad"),
        (Unspeakable(), "no readable text"), (SystemExit(3), "tried to end the program (exit status 3)"),
        (BaseExceptionGroup("both", [ValueError("x"), SystemExit(1)]), "failed with BaseExceptionGroup"),
        (StopAsyncIteration(), "failed with"), (TimeoutError(), "failed with TimeoutError"),
    ],
)  # fmt: skip
async def test_exceptions_become_error_outputs(context: ToolContext, error: BaseException, said: str) -> None:
    """Whatever a tool raises is told to the model."""

    async def body() -> None:
        raise error

    output = await outcome(body, context)
    assert output.is_error
    assert said in text_of(output)


@pytest.mark.parametrize("error", [SystemExit(2), StopIteration(), ValueError("bad")])
async def test_exceptions_of_plain_functions_too(context: ToolContext, error: BaseException) -> None:
    """Also what is raised in a worker thread, where `sys.exit()` of an argument parser may stand."""

    @tool
    def probe() -> None:
        raise error

    assert (await Toolset([probe]).run("probe", "{}", context)).is_error


async def test_nonsense_return_is_an_error(context: ToolContext) -> None:
    """A tool that breaks its contract ends its call, not the conversation."""

    async def body() -> str:
        return "text"

    assert "instead of a ToolOutput" in text_of(await outcome(body, context))


async def test_hanging_tool_is_stopped(context: ToolContext) -> None:
    """A tool that hangs ends at its time limit, and the seconds are told."""
    output = await outcome(anyio.sleep_forever, context, limit=0.05)
    assert output.is_error
    assert "after 0.05 seconds" in text_of(output)


async def test_hanging_plain_function_is_left_behind(context: ToolContext) -> None:
    """A thread cannot be ended, but nobody waits for it."""
    release = threading.Event()

    @tool(timeout=0.05)
    def probe() -> None:
        release.wait(30)

    try:
        with anyio.fail_after(10):
            output = await Toolset([probe]).run("probe", "{}", context)
    finally:
        release.set()
    assert "was stopped" in text_of(output)


async def test_error_made_by_the_timeout_is_told_as_the_timeout(context: ToolContext) -> None:
    """When being stopped makes a tool fail, the model reads why, not what broke."""

    async def body() -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            raise ConnectionError("closed") from None

    assert "was stopped" in text_of(await outcome(body, context, limit=0.05))


async def test_late_success_counts(context: ToolContext) -> None:
    """A tool that finished while it was being stopped has its result told."""

    async def body() -> ToolOutput:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.1)
        return text_output("done")

    assert text_of(await outcome(body, context, limit=0.01)) == "done"


async def test_own_cancellation_passes_through(context: ToolContext) -> None:
    """When the turn is cancelled, the call ends as cancelled, also if the tool turns that into an error."""
    for shape in (anyio.sleep_forever, hides_cancellation):
        started = anyio.Event()
        returned: list[ToolOutput] = []

        async def body(shape: Callable[[], Awaitable[None]] = shape, started: anyio.Event = started) -> None:
            started.set()
            await shape()

        async def caller(body: Callable[[], Awaitable[None]] = body, returned: list[ToolOutput] = returned) -> None:
            returned.append(await outcome(body, context))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(caller)
                await started.wait()
                group.cancel_scope.cancel()
        assert returned == []


async def hides_cancellation() -> None:
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        raise ValueError("not cancelled, honestly") from None


async def test_fault_145_foreign_cancellation_is_a_tool_error(context: ToolContext) -> None:
    """A cancellation that leaks out of a scope inside the tool ends the call, not the turn."""

    async def body() -> None:
        leaked: BaseException | None = None
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await anyio.lowlevel.checkpoint()
            except anyio.get_cancelled_exc_class() as error:
                leaked = error
        assert leaked is not None
        raise leaked

    await assert_foreign(body, context)


async def test_fault_145_scope_left_open_is_a_tool_error(context: ToolContext) -> None:
    """A cancelled scope that the tool never leaves does not cancel the task of the caller."""

    async def body() -> None:
        anyio.CancelScope().__enter__().cancel()
        await anyio.lowlevel.checkpoint()

    assert (await outcome(body, context)).is_error
    await anyio.lowlevel.checkpoint()
    assert anyio.current_effective_deadline() == math.inf


async def test_fault_145_native_cancellations_are_tool_errors(context: ToolContext, anyio_backend_name: str) -> None:
    """asyncio's own ways: raising it, awaiting a cancelled task, cancelling the current task."""
    if anyio_backend_name != "asyncio":
        pytest.skip("these exist on asyncio only; trio's are covered above")

    async def raises() -> None:
        raise asyncio.CancelledError

    async def awaits_cancelled() -> None:
        task = asyncio.ensure_future(asyncio.sleep(1000))
        task.cancel()
        await task

    async def cancels_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1000)

    for body in (raises, awaits_cancelled, cancels_itself):
        await assert_foreign(body, context)
    me = asyncio.current_task()
    assert me is not None
    assert me.cancelling() == 0


async def test_native_cancellation_of_the_caller_passes_through(context: ToolContext, anyio_backend_name: str) -> None:
    """An asyncio program that cancels the task of the turn is obeyed."""
    if anyio_backend_name != "asyncio":
        pytest.skip("asyncio only")
    started = asyncio.Event()

    async def body() -> None:
        started.set()
        await asyncio.sleep(1000)

    task = asyncio.ensure_future(outcome(body, context))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def assert_foreign(body: Callable[[], Awaitable[None]], context: ToolContext) -> None:
    output = await outcome(body, context)
    assert output.is_error
    assert "cancelled from within" in text_of(output)
    await anyio.lowlevel.checkpoint()


async def test_output_is_cut_and_scrubbed_at_birth(context: ToolContext) -> None:
    """What a tool returns is bounded and valid before anybody records it."""

    async def body() -> ToolOutput:
        return text_output("\ud800" + "x" * 100_000 + "\0")

    text = text_of(await outcome(body, context))
    assert len(text) <= 40_000
    assert text.startswith("\ufffdx")
    assert text.endswith("x␀")
    with pytest.raises(ValueError, match="at least"):
        Toolset(output_limit=10)


async def test_calls_run_side_by_side(context: ToolContext) -> None:
    """Two calls of one reply can wait for each other."""
    met = [anyio.Event(), anyio.Event()]

    async def meet(mine: int) -> ToolOutput:
        met[mine].set()
        await met[1 - mine].wait()
        return text_output("met")

    tools = Toolset([made("a", lambda: meet(0)), made("b", lambda: meet(1))])
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(tools.run, "a", "", context)
            group.start_soon(tools.run, "b", "", context)

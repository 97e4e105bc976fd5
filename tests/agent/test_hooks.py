"""Hooks in a conversation: what they change is in the log first, and no fault of theirs ends a turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import sniffio

from governors.messages import AssistantMessage, Message, Text, ToolResult, UserMessage
from governors.wire import WIRES
from runtime import Call, Hook, HookContext, Refused, Reply, ToolOutput, tool
from runtime.events import Notice, ReplyRecorded, ToolFinished, ToolStarted, TurnFinished, TurnStarted
from runtime.exports import as_model
from runtime.hooks.contract import POINTS, Response, ToolDone, ToolUse, TurnPrompt
from runtime.session.entries import (
    EditRecord,
    ExtensionRecord,
    HeadRecord,
    IntentRecord,
    OutcomeRecord,
    RequestRecord,
    ResultRecord,
    SystemRecord,
)
from tests.agents import Talk, assert_prefix_law, of, talk
from tests.agents_again import assert_every_request_is_made_again, bytes_of

WIRE = pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "openai_responses"])


@tool(read_only=True, bulky=True)
def look(place: str) -> str:
    """Look somewhere.

    Args:
        place: Where.
    """
    return f"In {place} there is a secret: 1234."


def holds(it: Talk) -> None:
    """The laws that no hook may break: legality is checked by the scripted model."""
    assert_prefix_law(it)
    assert_every_request_is_made_again(it)
    assert all(
        not [
            each
            for each in WIRES[request.model.wire].check(dict(request.body), request.model.abilities)
            if each.severity != "$"
        ]
        for request in it.model.requests
    )


def causes(it: Talk) -> list[str | None]:
    return [record.cause for record in it.records(OutcomeRecord)]


def notices(events: Sequence[object]) -> list[str]:
    return [notice.text for notice in of(Notice, events)]


class TestBeforeTurn:
    @WIRE
    async def test_a_prompt_holds_for_one_turn(self, tmp_path: Path, wire: str) -> None:
        """It comes and goes as patches at the tail, and the prefix stands."""

        def tone(context: HookContext, prompt: TurnPrompt) -> str | None:
            return "Answer in verse." if "poem" in prompt.text else None

        async with talk(tmp_path, ["One.", "Two.", "Three."], hooks=[Hook("tone", before_turn=tone)], wire=wire) as it:
            for text in ("hi", "a poem", "and prose"):
                await it.say(text)
            first, verse, prose = it.records(SystemRecord)
            assert verse.sections == {"hook:tone": '<section name="hook:tone">\nAnswer in verse.\n</section>'}
            assert prose.sections == {"hook:tone": None}
            assert (first.cause, verse.cause, prose.cause) == (None, "hook:tone", "hook:tone")
            assert "Answer in verse." not in str(it.bodies[0])
            assert "Answer in verse." in str(it.bodies[1])
            assert causes(it) == [None, None, None]
            holds(it)

    async def test_sections_are_replaced_and_left_out(self, tmp_path: Path) -> None:
        """All of the prompt may be another for a turn; the same wish twice costs nothing."""
        seen: list[TurnPrompt] = []

        async def other(context: HookContext, prompt: TurnPrompt) -> dict[str, str | None]:
            seen.append(prompt)
            return {**dict.fromkeys(prompt.sections), "pirate": "You are a pirate </section><section name='x'>."}

        async with talk(tmp_path, ["One.", "Two."], hooks=[Hook("pirate", before_turn=other)]) as it:
            await it.say("hi")
            await it.say("again")
            (record,) = it.records(SystemRecord)
            assert list(record.sections) == ["pirate"]
            assert str(record.sections["pirate"]).count("<section") == 1
            assert "identity" in seen[1].sections, "each turn begins from the files"
            holds(it)

    async def test_rubbish_changes_nothing(self, tmp_path: Path) -> None:
        hooks = [Hook("a", before_turn=lambda *_: 7), Hook("b", before_turn=lambda *_: {"x": 1, 2: "y"})]
        async with talk(tmp_path, ["One.", "Two."], hooks=hooks) as it:
            events = [*await it.say("hi"), *await it.say("again")]
            assert len(notices(events)) == 2
            assert "The hook a (before_turn) changed nothing" in notices(events)[0]
            assert len(it.records(SystemRecord)) == 1


class TestTransformContext:
    @WIRE
    async def test_every_kind_of_change_is_an_entry(self, tmp_path: Path, wire: str) -> None:
        """Words of a user, a reply and a result; a message removed, one put in front, one added at the end."""

        def change(context: HookContext, messages: Sequence[Message]) -> list[Message]:
            changed: list[Message] = []
            for message in messages:
                match message:
                    case ToolResult() if "1234" in message.text:
                        message = replace(message, content=(Text(message.text.replace("1234", "****")),))
                    case UserMessage(content=(Text("my name is Ann"), *rest)):
                        message = replace(message, content=(Text("my name is X"), *rest))
                    case AssistantMessage() if message.text == "Hello Ann.":
                        message = replace(message, content=(Text("Hello X."),))
                    case _:
                        pass
                changed.append(message)
            last = changed[-1]
            if isinstance(last, UserMessage) and last.content[0] == Text("look"):
                changed.insert(-1, UserMessage((Text("IN FRONT"),)))
                changed.append(UserMessage((Text("AT THE END"),)))
            return [m for m in changed if not (isinstance(m, UserMessage) and m.content[0] == Text("forget this"))]

        script = ["Hello Ann.", "Forgotten?", Reply("", [Call("look", {"place": "the box"})]), "Done.", "Bye."]
        hooks = [Hook("veil", transform_context=change)]
        async with talk(tmp_path, script, hooks=hooks, tools=[look], wire=wire) as it:
            for text in ("my name is Ann", "forget this", "look", "bye"):
                events = await it.say(text)
                assert not notices(events)
            last = str(it.bodies[-1])
            assert "Ann" not in last and "1234" not in last and "forget this" not in last
            assert "my name is X" in last and "Hello X." in last and "****" in last
            assert last.index("IN FRONT") < last.index("AT THE END")
            assert "[From the extension veil:]" in last
            edits = it.records(EditRecord)
            assert {edit.cause for edit in edits} == {"hook:veil"}
            assert sorted(edit.action for edit in edits) == ["omit", "replace", "replace", "replace"]
            assert [record.before is None for record in it.records(ExtensionRecord)] == [False, True]
            (result,) = it.records(ResultRecord)
            assert "1234" in str(result.content), "the log keeps what was"
            holds(it)

    async def test_hooks_are_chained_on_copies(self, tmp_path: Path) -> None:
        """Each sees what the one before it made; what it does to its copies changes nothing."""
        seen: list[str] = []

        def first(context: HookContext, messages: Sequence[Message]) -> list[Message]:
            return [
                replace(m, content=(Text("two"), *m.content[1:]))
                if isinstance(m, UserMessage) and m.content[0] == Text("one")
                else m
                for m in messages
            ]

        def second(context: HookContext, messages: Sequence[Message]) -> None:
            for message in messages:
                if isinstance(message, UserMessage):
                    seen.append(message.text)
                    object.__setattr__(message.content[0], "text", "broken")
                    message.memo.clear()

        hooks = [Hook("a", transform_context=first), Hook("b", transform_context=second)]
        async with talk(tmp_path, ["One.", "Two."], hooks=hooks) as it:
            await it.say("one")
            await it.say("more")
            assert seen[0].startswith("two")
            assert "broken" not in str(it.bodies)
            holds(it)

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            (lambda messages: 7, "whole messages"),
            (lambda messages: ["hello"], "whole messages"),
            (lambda messages: [UserMessage((7,))], "whole messages"),  # type: ignore[arg-type]
            (lambda messages: [m for m in messages if not isinstance(m, ToolResult)], "without its reply"),
            (lambda messages: list(reversed(messages)), "cannot be moved"),
            (lambda messages: [AssistantMessage((Text("made up"),)), *messages], "user's role"),
            (lambda messages: [*messages, UserMessage(())], "cannot be told"),
        ],
    )
    async def test_what_cannot_be_recorded_is_refused(self, tmp_path: Path, wrong: Any, why: str) -> None:
        """With a notice, once; the turn goes on with what there was."""
        hooks = [Hook("odd", transform_context=lambda context, messages: wrong(messages))]
        script = [Reply("", [Call("look", {"place": "here"})]), "One.", "Two."]
        async with talk(tmp_path, script, hooks=hooks, tools=[look]) as it:
            events = [*await it.say("a"), *await it.say("b")]
            assert sum(why in text for text in notices(events)) == 1
            assert [event.error for event in of(TurnFinished, events)] == [None, None]
            holds(it)

    async def test_it_holds_through_cuts_and_stubs(self, tmp_path: Path) -> None:
        """The governors go on from what the hook made, and a resumed session sees the same."""

        def note(context: HookContext, messages: Sequence[Message]) -> list[Message]:
            last = messages[-1]
            if isinstance(last, UserMessage) and last.content[0].text.startswith("question"):  # type: ignore[union-attr]
                return [*messages[:-1], UserMessage((Text("x " * 150),)), last]
            return list(messages)

        script: list[Any] = []
        for number in range(8):
            script += [Reply("", [Call("look", {"place": f"{number} " * 700})]), f"answer {number}"]
        hooks = [Hook("note", transform_context=note)]
        async with talk(tmp_path, script, hooks=hooks, tools=[look], window=6_000, session="s") as it:
            for number in range(8):
                assert not notices(await it.say(f"question {number}"))
            assert it.records(HeadRecord) and it.records(ExtensionRecord)
            holds(it)
        async with talk(tmp_path, ["again"], hooks=hooks, tools=[look], window=6_000, session="s") as it:
            await it.say("on")
            assert_every_request_is_made_again(it)


class TestBeforeRequest:
    @WIRE
    async def test_what_was_changed_stands_in_the_request_entry(self, tmp_path: Path, wire: str) -> None:
        """By JSON pointers; the body can be made again without the hook, and its prefix is the one that was sent."""

        def shape(context: HookContext, payload: dict[str, Any]) -> dict[str, Any]:
            payload["metadata"] = {"user_id": "a/b~c"}
            return payload

        async with talk(tmp_path, ["One.", "Two."], hooks=[Hook("tag", before_request=shape)], wire=wire) as it:
            await it.say("hi")
            await it.say("again")
            for record, body in zip(it.records(RequestRecord), it.bodies, strict=True):
                (change,) = record.changes
                assert (change.hook, change.op, change.path) == ("tag", "add", "/metadata")
                assert body["metadata"] == {"user_id": "a/b~c"}
            assert causes(it) == [None, None]
            holds(it)
            entries = it.on_disk()
            numbers = [entry.id for entry in entries if isinstance(entry.record, RequestRecord)]
            for number, body in zip(numbers, it.bodies, strict=True):
                seen = as_model(entries, number, it.agent.model.info)
                assert seen.same and seen.data == bytes_of(body)

    async def test_a_moved_prefix_has_the_hook_as_its_cause(self, tmp_path: Path) -> None:
        """Whether it begins to change the front, changes it otherwise, or stops doing so."""
        words = iter(["A", "A", "B", None])

        def shape(context: HookContext, payload: dict[str, Any]) -> dict[str, Any] | None:
            word = next(words)
            if word is None:
                return None
            payload["messages"][0]["content"] = f"You are {word}."
            return payload

        hooks = [Hook("front", before_request=shape)]
        async with talk(tmp_path, ["1", "2", "3", "4"], hooks=hooks, wire="openai_chat") as it:
            for text in "abcd":
                await it.say(text)
            assert causes(it) == [None, None, "hook:front", "hook:front"]
            holds(it)

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            (lambda body: {**body, "messages": []}, "rules of openai_chat"),
            (lambda body: {**body, "model": "other"}, "/model"),
            (lambda body: {**body, "x": object()}, "JSON object"),
            (lambda body: [body], "JSON object"),
            (lambda body: "rubbish", "JSON object"),
            (lambda body: {**body, "user": "word " * 40_000}, "budget"),
        ],
    )
    async def test_an_illegal_body_is_refused_by_name(self, tmp_path: Path, wrong: Any, why: str) -> None:
        """And what the other hooks made is sent."""
        hooks = [
            Hook("bad", before_request=lambda context, body: wrong(body)),
            Hook("good", before_request=lambda context, body: {**body, "user": "u"}),
        ]
        async with talk(tmp_path, ["One."], hooks=hooks, wire="openai_chat", window=30_000) as it:
            (text,) = notices(await it.say("hi"))
            assert "The hook bad (before_request) changed nothing" in text and why in text
            assert it.bodies[0]["user"] == "u"
            holds(it)

    async def test_the_payload_is_a_copy(self, tmp_path: Path) -> None:
        def spoil(context: HookContext, body: dict[str, Any]) -> None:
            body["messages"].clear()

        async with talk(tmp_path, ["One."], hooks=[Hook("spoil", before_request=spoil)]) as it:
            await it.say("hi")
            assert it.bodies[0]["messages"]
            holds(it)


class TestTools:
    async def test_arguments_are_changed_and_the_intent_says_so(self, tmp_path: Path) -> None:
        """The model's own call stays as it wrote it."""

        def elsewhere(context: HookContext, use: ToolUse) -> dict[str, Any]:
            use.arguments["place"] = "spoilt"  # type: ignore[index]  # a copy: it changes nothing
            return {"place": "the attic"}

        script = [Reply("", [Call("look", {"place": "the cellar"})]), "Done."]
        async with talk(tmp_path, script, hooks=[Hook("move", before_tool=elsewhere)], tools=[look]) as it:
            events = await it.say("go")
            (intent,) = it.records(IntentRecord)
            assert (intent.arguments, intent.hook) == ('{"place": "the attic"}', "move")
            assert of(ToolStarted, events)[0].arguments == '{"place": "the attic"}'
            assert "In the attic" in of(ToolFinished, events)[0].text
            assert "the cellar" in str(it.bodies[1])
            holds(it)

    async def test_a_call_is_refused_or_answered(self, tmp_path: Path) -> None:
        """The tool is not run; who did it stands in the intent."""
        ran: list[str] = []

        @tool
        def shout(word: str) -> str:
            """Shout.

            Args:
                word: What.
            """
            ran.append(word)
            return word.upper()

        async def guard(context: HookContext, use: ToolUse) -> object:
            if use.arguments["word"] == "no":
                return Refused("not now")
            return "cached" if use.arguments["word"] == "yes" else None

        calls = [Call("shout", {"word": word}) for word in ("no", "yes", "maybe")]
        async with talk(
            tmp_path, [Reply("", calls), "Done."], hooks=[Hook("guard", before_tool=guard)], tools=[shout]
        ) as it:
            await it.say("go")
            results = it.records(ResultRecord)
            by_call = {record.call[1]: (record.content[0].text, record.is_error) for record in results}  # type: ignore[union-attr]
            assert by_call == {
                0: ("Refused by the hook guard, and nothing was done: not now", True),
                1: ("cached", False),
                2: ("MAYBE", False),
            }
            assert ran == ["maybe"]
            assert [intent.hook for intent in it.records(IntentRecord)] == ["guard", "guard", None]
            holds(it)

    async def test_a_result_is_changed_before_it_is_recorded(self, tmp_path: Path) -> None:
        def hide(context: HookContext, done: ToolDone) -> object:
            return ToolOutput((Text(done.output.content[0].text.replace("1234", "****")),))  # type: ignore[union-attr]

        script = [Reply("", [Call("look", {"place": "x"})]), "Done."]
        async with talk(tmp_path, script, hooks=[Hook("hide", after_tool=hide)], tools=[look]) as it:
            await it.say("go")
            assert b"1234" not in it.log.read_bytes()
            assert "****" in str(it.bodies[1])
            holds(it)

    async def test_a_result_that_no_hook_has_seen_is_not_recorded(self, tmp_path: Path) -> None:
        """Stopped meanwhile: the log says that it took effect, and nothing of what it gave."""
        reached = anyio.Event()

        async def slow(context: HookContext, done: ToolDone) -> None:
            reached.set()
            await anyio.sleep_forever()

        script = [Reply("", [Call("look", {"place": "x"})]), "Done."]
        async with talk(tmp_path, script, hooks=[Hook("slow", after_tool=slow)], tools=[look]) as it:
            async with anyio.create_task_group() as group:
                group.start_soon(it.say, "go")
                await reached.wait()
                await it.agent.stop()
            (result,) = it.records(ResultRecord)
            assert "taken effect" in str(result.content) and "1234" not in str(result.content)


class TestTold:
    async def test_responses_and_events_are_told_in_order(self, tmp_path: Path) -> None:
        """Deltas too; the last event is heard before the runtime is closed."""
        heard: list[str] = []
        replies: list[Response] = []
        contexts: list[HookContext] = []

        class Watch:
            def on_event(self, context: HookContext, event: object) -> None:
                heard.append(type(event).__name__)
                contexts.append(context)

            async def after_response(self, context: HookContext, response: Response) -> None:
                replies.append(response)

        async with talk(tmp_path, ["Hello."], hooks=[Watch()]) as it:
            await it.say("hi")
            workspace = it.runtime.workspace.root
            session = it.agent.session.id
        assert heard.index(TurnStarted.__name__) < heard.index(ReplyRecorded.__name__) < heard.index("TurnFinished")
        assert [reply.message.text for reply in replies] == ["Hello."]
        assert replies[0].entry is not None
        assert contexts[-1] == HookContext("assistant", session, workspace, contexts[-1].turn)
        with pytest.raises(AttributeError):
            contexts[0].agent = "other"  # type: ignore[misc]


def raising(context: HookContext, value: object) -> None:
    raise RuntimeError("broken on purpose")


async def hanging(context: HookContext, value: object) -> None:
    await anyio.sleep_forever()


async def cancelling(context: HookContext, value: object) -> None:
    """Cancels the task that it runs in, as a library inside it may."""
    if sniffio.current_async_library() == "asyncio":
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(1)
    raise SystemExit(3)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("fault", [raising, hanging, cancelling])
async def test_a_fault_is_told_once_and_passed_over(tmp_path: Path, point: str, fault: Any) -> None:
    """At every point: the turn ends as without the hook, which stays the only one that is passed over."""
    script = [Reply("", [Call("look", {"place": "x"})]), "One.", Reply("", [Call("look", {"place": "y"})]), "Two."]
    ends: list[object] = []
    hooks = [
        Hook("bad", **{point: fault}, timeout=0.05),
        Hook("good", on_event=lambda context, event: ends.append(event)),
    ]
    async with talk(tmp_path, script, hooks=hooks, tools=[look]) as it:
        events = [*await it.say("go"), *await it.say("again")]
        finished = of(TurnFinished, events)
        assert [(each.text, each.error) for each in finished] == [("One.", None), ("Two.", None)]
        assert sum(f"The hook bad ({point}) failed" in text for text in notices(events)) <= 1
        holds(it)
    told = [event for event in ends if isinstance(event, Notice)]
    assert len(told) == 1
    assert ends and any(isinstance(event, TurnFinished) for event in ends)


async def test_a_thread_that_hangs_holds_up_nothing(tmp_path: Path) -> None:
    """A plain function that never ends costs its time-out once, not at each step."""
    release = threading.Event()
    calls: list[int] = []

    def stuck(context: HookContext, messages: object) -> None:
        calls.append(1)
        release.wait(20)

    hooks = [Hook("stuck", transform_context=stuck, timeout=0.05)]
    try:
        async with talk(tmp_path, ["1", "2", "3"], hooks=hooks) as it:
            for text in "abc":
                await it.say(text)
            assert calls == [1]
    finally:
        release.set()


async def test_stopping_does_not_wait_for_a_hook(tmp_path: Path) -> None:
    reached = anyio.Event()

    async def slow(context: HookContext, prompt: object) -> None:
        reached.set()
        await anyio.sleep_forever()

    hooks = [Hook("slow", before_turn=slow, timeout=60)]
    async with talk(tmp_path, ["1"], hooks=hooks) as it, anyio.create_task_group() as group:
        group.start_soon(it.say, "go")
        await reached.wait()
        with anyio.fail_after(5):
            await it.agent.stop()


async def test_pictures_are_left_out_when_the_config_says_so(tmp_path: Path) -> None:
    """A constant text stands in their place; the setting is in the log, and switching names the cause."""
    from governors.messages import Image
    from runtime.session.entries import SettingRecord

    image = Image("image/png", "aGVsbG8=", 1, 1)
    for images in (False, True):
        async with talk(tmp_path, ["One.", "Two."], settings={"images": images}, session="s") as it:
            [event async for event in it.agent.send([Text("see"), image])]
            assert ("aGVsbG8=" in str(it.bodies[-1])) is images
            assert "image left out" in str(it.bodies[-1]) or images
            assert_every_request_is_made_again(it)
    assert [record.value for record in it.records(SettingRecord)] == ["config", None]
    assert causes(it)[-1] == "images"

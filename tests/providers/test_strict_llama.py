"""llama.cpp's own server takes what the wire of Chat Completions makes of odd conversations; few and short."""

from __future__ import annotations

import pytest

from governors.messages import AssistantMessage, Image, Message, Text, ToolCall, ToolResult, ToolSpec, UserMessage
from governors.repair import repair
from governors.wire import WIRES, Encoder
from runtime.providers.base import Request
from runtime.providers.local import Local, is_installed
from runtime.providers.weights import find_model
from tests.strict.mind import ODD

from .test_local import answer

WEIGHTS = find_model()
pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not is_installed() or WEIGHTS is None, reason="the embedded model is not there"),
]
TOOL = ToolSpec("work", "Work.", {"type": "object", "properties": {"size": {"type": "integer"}}})


def conversations() -> list[tuple[Message, ...]]:
    """Ids that repeat or are empty, arguments that are none, results that are empty or lost, pictures."""
    one = [
        ToolCall("call_0", "work", ODD[4]),
        ToolCall("", "work", "{}"),
        ToolCall("x" * 70, "a b", '{"size": 1}'),
    ]
    results = [
        ToolResult("call_0", "work", ()),
        ToolResult("x" * 70, "a b", (Text("\ud83d half"), Image("image/png", "aGk=", 1, 1)), is_error=True),
    ]
    first: list[Message] = [UserMessage((Text("Go."),)), AssistantMessage(tuple(one), "tool_use", "m", "openai_chat")]
    again = AssistantMessage((Text("Once more."), ToolCall("call_0", "work", "{}")), "tool_use", "m", "anthropic")
    wild = (*first, *results, UserMessage((Text("And now?"),)), again, UserMessage((Text(" "),)))
    return [
        wild,
        (*wild, AssistantMessage((Text("Done."),), "stop", "m", "openai_chat"), UserMessage((Text("Say hi."),))),
    ]


async def test_llama_takes_odd_conversations() -> None:
    """Each is answered, and the second is read from the cache of the first."""
    assert WEIGHTS is not None
    local = Local(WEIGHTS, window=1024, threads=1)
    info = local.model_info()
    read = []
    try:
        for messages in conversations():
            encoder = Encoder(
                WIRES["openai_chat"],
                system="Be brief.",
                tools=(TOOL,),
                abilities=info.abilities,
                model=info.id,
                max_output=8,
            )
            encoder.append(repair(messages, id_pattern=info.abilities.id_pattern))
            assert not [each for each in encoder.violations() if each.severity == "E"]
            _, end = await answer(local, Request(info, encoder.to_bytes()))
            assert end.problem is None, end.problem
            assert end.message.usage is not None
            read.append(end.message.usage.cache_read)
    finally:
        await local.close()
    assert read[1] > 0

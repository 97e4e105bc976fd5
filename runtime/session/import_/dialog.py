"""Messages in OpenAI's chat form, one after another, as nanobot and many other programs keep them.

A system prompt becomes a note: an imported session gets ours when it goes on. Reasoning that was kept beside a reply
comes before its text.
"""

from __future__ import annotations

from typing import Any

from governors.messages import StopReason, Text, Thinking, ToolCall, UserPart

from ..entries import MessageRecord, Part
from .book import Book
from .drafts import Spot
from .parts import Lose, Object, a_text, an_object, call, moment, objects, said, system_prompt, text_of, usage

_STOPS: dict[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refused",
    "error": "error",
}


def take_message(book: Book, line: int, message: Object, program: str, model: str | None = None) -> None:
    """Add a message to a linear conversation."""
    book.clock(moment(message.get("timestamp") or message.get("created_at") or message.get("created")))

    def lose(what: str) -> None:
        book.account.lose(line, what)

    role = message.get("role")
    match role:
        case "user":
            _go_on(book, book.said(said(message.get("content"), lose), line, book.spot, meta=_is_hidden(message)))
        case "assistant":
            record = _reply(message, program, model, lose)
            _go_on(book, book.hang(record, line, book.spot))
        case "tool" | "function":
            _result(book, line, message, lose)
        case "system" | "developer":
            book.note(text_of(message.get("content")), line, system_prompt(program))
        case _:
            told = f"a message of the unknown role {role!r}" if role is not None else _other(message)
            book.account.leave(line, told)


def _other(message: Object) -> str:
    kind = message.get("_type") or message.get("type")
    return f"unknown type {kind!r}" if kind is not None else "an object that is no message"


def _is_hidden(message: Object) -> bool:
    """Whether nanobot itself wrote it for the user."""
    return message.get("_hidden_history") is True or message.get("injected_event") is not None


def _go_on(book: Book, draft: Any) -> None:
    book.spot = Spot(draft)
    book.leaf = draft


def _result(book: Book, line: int, message: Object, lose: Lose) -> None:
    name = a_text(message.get("name"))
    found = book.find_call(a_text(message.get("tool_call_id")), book.spot.tail, tool=name)
    if found is None:
        book.account.leave(line, "the result of a call that is not in the file")
        return
    content: tuple[UserPart, ...] = said(message.get("content"), lose)
    _go_on(book, book.result(found, content, line, book.spot, is_error=message.get("is_error") is True))


def _reply(message: Object, program: str, model: str | None, lose: Lose) -> MessageRecord:
    parts: list[Part] = [*_reasoning(message)]
    content = said(message.get("content"), lose)
    parts += [part for part in content if isinstance(part, Text)]
    if len(content) > sum(isinstance(part, Text) for part in content):
        lose("a picture that the model made")
    if refusal := a_text(message.get("refusal")):
        parts.append(Text(refusal))
    parts += _calls(message)
    told = a_text(message.get("finish_reason")) or a_text(message.get("stop_reason"))
    calls = any(isinstance(part, ToolCall) for part in parts)
    return MessageRecord(
        role="assistant",
        content=tuple(parts),
        stop=_STOPS.get(told, "tool_use" if calls else "stop"),
        model=a_text(message.get("model")) or model,
        wire=f"{program}/openai_chat",
        usage=usage(message.get("usage"), plain="prompt_tokens", read="", output="completion_tokens"),
    )


def _calls(message: Object) -> list[ToolCall]:
    made = []
    for each in objects(message.get("tool_calls")):
        told = an_object(each.get("function")) or each
        signature = an_object(an_object(each.get("extra_content")).get("google")).get("thought_signature")
        made.append(call(each.get("id"), told.get("name"), told.get("arguments"), a_text(signature)))
    legacy = an_object(message.get("function_call"))
    if legacy:
        made.append(call("", legacy.get("name"), legacy.get("arguments")))
    return made


def _reasoning(message: Object) -> list[Thinking]:
    blocks = [
        Thinking(a_text(block.get("thinking")), a_text(block.get("signature")) or a_text(block.get("data")) or None)
        for block in objects(message.get("thinking_blocks"))
    ]
    text = a_text(message.get("reasoning_content")) or a_text(message.get("reasoning"))
    return blocks or ([Thinking(text)] if text else [])

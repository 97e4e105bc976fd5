"""The estimate for a whole list of messages, whose replies carry the usage of the calls that made them."""

from __future__ import annotations

from collections.abc import Sequence

from .estimate import Estimator
from .estimate_count import Count, messages_count
from .messages import AssistantMessage, Message
from .tokens import Counter

_REPLIES = 64  # the last ones tell all that is remembered: ratios of 16 requests, and of 16 additions


def estimator_of(
    messages: Sequence[Message],
    counter: Counter,
    *,
    family: float,
    model: str | None = None,
    fixed: Count | None = None,
    since: int = 0,
    documents: bool = True,
) -> Estimator:
    """What the replies of `model` in `messages` tell.

    `messages` must be repaired and in the form in which they will be sent. `fixed` is the count of system prompt and
    tools. `since` is the index of the first message after the newest head or edit: replies before it tell how the
    model counts what stands between them, but no longer how large a request is. `documents` is as for `message_count`.
    """
    replies = [index for index, message in enumerate(messages) if _tells(message, model)][-_REPLIES:]
    estimator, total, counted = Estimator(family, counter.key), fixed or Count(), 0
    before = -1
    for index in replies:
        if before < since <= index:
            estimator = estimator.moved()
        new = messages_count(messages[counted:index], counter, model, documents=documents)
        total, counted = total + new, index
        reply = messages[index]
        assert isinstance(reply, AssistantMessage)
        estimator = estimator.observe(reply, total, counter, complete=index >= since)
        before = index
    return estimator if replies and replies[-1] >= since else estimator.moved()


def _tells(message: Message, model: str | None) -> bool:
    return isinstance(message, AssistantMessage) and message.usage is not None and message.model == model

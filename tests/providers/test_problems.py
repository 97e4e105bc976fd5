"""Errors of providers, told apart and put into words."""

from __future__ import annotations

import socket
import ssl
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.problems import (
    Target,
    from_exception,
    from_status,
    is_transient,
    may_be_overflow,
    unsendable,
)
from runtime.providers.redact import redact
from runtime.providers.waits import LONGEST, asked_wait, retry_after

TARGET = Target("acme", "https://api.acme.test/v1?key=abcdefghij", "m-1", "ACME_API_KEY", ("topsecretvalue",))

OVERFLOWS: list[tuple[str, int | None, int | None]] = [
    ("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", 131040, 131393),
    ("Prompt has 256468 tokens, but the configured context size is 256000 tokens", 256000, 256468),
    ("tokens in request more than max tokens allowed", None, None),
    ("prompt is too long: 208310 tokens > 200000 maximum", 200000, 208310),
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease", 200000, 190000),
    ("This model's maximum context length is 128,000 tokens. However, your messages resulted in 130,500 tokens. "
     "Please reduce the length of the messages.", 128000, 130500),
    ("This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (4900 in the messages, "
     "100 in the completion).", 4097, 4900),
    ("This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens", 131072,
     150000),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.", 272000,
     300000),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    ("request (12031 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 12031),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1048576, 1200000),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32768,
     40000),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812),
    ("Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)", 262144, 300000),
    ("You passed 5000 input tokens and requested 100 output tokens. However, the model's context length is only 4096 "
     "tokens", 4096, 5000),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096, 5000),
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
    ("Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", 8192, 9000),
    ("`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 0 `max_new_tokens`", 4097,
     5000),
    ("Input validation error: `inputs` must have less than 4096 tokens. Given: 5000", 4096, 5000),
    ("prompt token count of 150000 exceeds the limit of 128000", 128000, 150000),
    ("Range of input length should be [1, 129024]", 129024, None),
    ("Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
     "length of only 4096 tokens", 4096, 5000),
    ("prompt too long; exceeded max context length by 12 tokens", None, None),
    ("Input is too long for requested model.", None, None),
    ("invalid params, context window exceeds limit (2013)", None, None),
    ("Prompt exceeds max length", None, None),
]  # fmt: skip

NOT_OVERFLOWS: list[tuple[int, str]] = [
    (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000."),
    (400, "Too many tokens, please wait before trying again."),
    (400, "max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens for claude-x"),
    (400, "max_tokens is too large: 200000. This model supports at most 16384 completion tokens, you provided 200000."),
    (429, "This request would exceed your organization's rate limit of 40,000 input tokens per minute"),
    (400, "Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576"),
    (400, "Unknown parameter: 'context_length'"),
    (401, "prompt is too long: 5 tokens > 4 maximum"),
]


@pytest.mark.parametrize(("message", "window", "prompt"), OVERFLOWS)
@pytest.mark.parametrize("status", [400, 413, None])
def test_fault_98_overflow_wordings(message: str, window: int | None, prompt: int | None, status: int | None) -> None:
    """Each wording is known, with its numbers, in an error response and inside a stream."""
    problem = from_status(status, {"error": {"message": message, "type": "invalid_request_error"}}, TARGET)
    assert (problem.kind, problem.window, problem.prompt) == ("overflow", window, prompt)
    assert not is_transient(problem)


@pytest.mark.parametrize(("status", "message"), NOT_OVERFLOWS)
def test_fault_98_false_alarms(status: int, message: str) -> None:
    """Throttling and output limits speak of tokens too."""
    assert from_status(status, {"error": {"message": message}}, TARGET).kind != "overflow"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 400, "type": "exceed_context_size_error", "message": "?",
                   "n_prompt_tokens": 12031, "n_ctx": 4096}},
        {"error": {"code": "context_length_exceeded",
                   "message": "maximum context length is 4096 tokens. you requested 12031"}},
    ],
)  # fmt: skip
def test_overflow_by_code(body: dict[str, Any]) -> None:
    """llama.cpp and OpenAI say it by a code; the text names the numbers."""
    problem = from_status(400, body, TARGET)
    assert (problem.kind, problem.window, problem.prompt) == ("overflow", 4096, 12031)
    assert "4,096" in problem.text
    assert "12,031" in problem.text


def test_a_body_too_large_for_the_host_is_an_overflow() -> None:
    """A smaller request helps; a proxy's 413 has no JSON at all."""
    assert from_status(413, "<html><title>413 Request Entity Too Large</title></html>", TARGET).kind == "overflow"


def test_a_request_larger_than_a_minutes_allowance_is_not_waited_for() -> None:
    """Waiting never makes it fit, and the window is not what is too small."""
    text = "Request too large for m-1 on tokens per minute (TPM): Limit 6000, Requested 7000"
    for status in (413, 429):
        problem = from_status(status, {"error": {"message": text, "code": "rate_limit_exceeded"}}, TARGET)
        assert problem.kind == "bad_request"


def test_an_unknown_refusal_near_the_limit_may_be_an_overflow() -> None:
    """The caller knows the sizes."""
    problem = from_status(400, {"error": {"message": "computer says no"}}, TARGET)
    assert may_be_overflow(problem, 950, 1000)
    assert not may_be_overflow(problem, 500, 1000)
    assert not may_be_overflow(from_status(401, "", TARGET), 950, 1000)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, "bad_request"), (400, "bad_request"), (401, "auth"), (402, "auth"), (403, "auth"), (404, "bad_request"),
        (408, "network"), (409, "overloaded"), (422, "bad_request"), (429, "rate_limited"), (500, "overloaded"),
        (501, "unknown"), (502, "overloaded"), (503, "overloaded"), (529, "overloaded"), (None, "unknown"),
    ],
)  # fmt: skip
def test_kinds_of_statuses(status: int | None, kind: str) -> None:
    """What each status means without further words."""
    assert from_status(status, "", TARGET).kind == kind


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, "auth"),
        (400, {"type": "error", "error": {"message": "Your credit balance is too low"}}, "auth"),
        (400, {"error": {"code": "content_filter", "message": "filtered"}}, "refused"),
        (400, {"error": {"message": "Output blocked by content filtering policy"}}, "refused"),
        (429, [{"error": {"message": "You exceeded your current quota", "status": "EXHAUSTED"}}], "rate_limited"),
        (None, {"error": {"message": "The server is overloaded"}}, "overloaded"),
        (None, {"error": {"message": "Too many requests"}}, "rate_limited"),
    ],
)  # fmt: skip
def test_words_and_codes_refine_a_status(status: int | None, body: Any, kind: str) -> None:
    """Quota that is spent never comes back by waiting; a filter is not a mistake of form."""
    assert from_status(status, body, TARGET).kind == kind


def test_a_server_may_say_whether_to_retry() -> None:
    """`x-should-retry` outranks the status."""
    assert not is_transient(from_status(500, "", TARGET, {"X-Should-Retry": "false"}))
    assert is_transient(from_status(400, "", TARGET, {"x-should-retry": "true"}))


def test_texts_say_what_to_do() -> None:
    """Each names the thing to check."""
    assert "ACME_API_KEY" in from_status(401, {"error": {"message": "bad key"}}, TARGET).text
    assert "m-1" in from_status(404, "", TARGET).text
    assert "no credit" in from_status(402, "", TARGET).text
    assert "base_url" in from_status(307, "", TARGET).text


def test_spent_credit_is_no_fault_of_the_key() -> None:
    """Only the code says so where the message speaks of a quota."""
    body = {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}
    assert from_status(429, body, TARGET).text.startswith("the account at acme has no credit left (429)")


def test_a_refused_call_without_a_key_says_how_to_send_one() -> None:
    """There is no key to check."""
    text = from_status(401, {"error": {"message": "no key"}}, Target("mine", "http://127.0.0.1:1/v1", "m-1")).text
    assert "none was sent (401)" in text and "key_env in [providers.mine]" in text


def test_a_page_without_a_title_shows_its_words_alone() -> None:
    """Tags are nothing for people."""
    text = from_status(500, "<html><body>Internal <b>Server</b> Error</body></html>", TARGET).text
    assert text == "acme failed or is overloaded (500): Internal Server Error"


@pytest.mark.parametrize(
    "body",
    [
        {"detail": "the words"},
        {"error": "the words"},
        {"message": "the words"},
        [{"error": {"message": "the words"}}],
        {"error": {"message": "Provider returned error", "metadata": {"raw": '{"m": "the words"}'}}},
        "the words",
        "<html><head><title>the words</title></head><body>much more</body></html>",
        {"detail": [{"loc": ["body"], "msg": "the words"}]},
    ],
)
def test_the_providers_words_are_found(body: Any) -> None:
    """Wherever they stand."""
    assert "the words" in from_status(400, body, TARGET).text


def test_secrets_never_come_out() -> None:
    """Not the key itself, not what looks like one, not in text nor detail."""
    body = {
        "error": {
            "message": "Incorrect API key provided: sk-proj-abc***xyz1. topsecretvalue",
            "headers": "Authorization: Bearer abcdefghijklm x-api-key: 0123456789ab",
            "url": "https://u:pw@h.test/v1?api_key=zzzzzzzzz&key=yyyyyyyy",
            "more": "AIzaSyA0123456789012345678901234567890 gsk_abcdefghij",
        }
    }
    problem = from_status(401, body, TARGET)
    for secret in ("sk-proj", "topsecret", "abcdefghij", "0123456789ab", "zzzz", "yyyy", "AIza", "gsk_", "pw@"):
        assert secret not in problem.text + problem.detail
    assert "abcdefghij" not in from_exception(ConnectionRefusedError(), TARGET).text


def test_ordinary_words_are_not_redacted() -> None:
    """The mask hides secrets, not sentences."""
    text = "ask-me anything; the task-list, key: value, risk-free, tokens: 12000, basic idea"
    assert redact(text, ("none",)) == text


def raised(*errors: BaseException) -> BaseException:
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


class ConnectTimeout(Exception): ...


class ReadTimeout(Exception): ...


class UnsupportedProtocol(Exception): ...


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (raised(RuntimeError(), OSError(), ExceptionGroup("g", [ConnectionRefusedError()])), "network", "running?"),
        (raised(RuntimeError(), socket.gaierror()), "network", "resolved"),
        (raised(RuntimeError(), ssl.SSLCertVerificationError()), "bad_request", "certificate"),
        (raised(RuntimeError(), ConnectTimeout()), "network", "in time"),
        (raised(RuntimeError(), ReadTimeout()), "network", "sent nothing for 7 seconds"),
        (raised(RuntimeError(), UnsupportedProtocol()), "bad_request", "base_url"),
        (ConnectionResetError(), "network", "broke"),
    ],
)
def test_exceptions_are_told_by_what_caused_them(error: BaseException, kind: str, words: str) -> None:
    """The SDKs wrap them; the root says what happened, and the text says where."""
    problem = from_exception(error, TARGET, 7)
    assert problem.kind == kind
    assert words in problem.text


def test_unsendable_requests_name_the_reason() -> None:
    """A lone surrogate is our mistake, an odd character in the key the user's."""
    with pytest.raises(UnicodeEncodeError) as body:
        "\ud800".encode()
    with pytest.raises(UnicodeEncodeError) as header:
        "é".encode("ascii")
    assert "valid Unicode" in unsendable(body.value, TARGET).text
    assert "the key" in unsendable(header.value, TARGET).text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}, 60.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "1e300"}, LONGEST),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds or a date, against the clock that is handed in."""
    assert retry_after(headers, now=40.0) == seconds


def test_gemini_tells_the_wait_in_the_body() -> None:
    """`RetryInfo` stands among the details."""
    body = [{"error": {"message": "quota", "details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}]
    assert from_status(429, body, TARGET).retry_after == 34.0


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached for m on tokens per min (TPM): Limit 30000. Please try again in 7.66s. Visit", 7.66),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 1m2.5s", 62.5),
        ("Please try again in 6m0s.", 360.0),
        ("Please retry after 34 seconds.", 34.0),
        ("Please try again in 2h3m1s", 7_381.0),
        ("Please try again in 3m", 180.0),
        ("Please try again in a moment", None),
        ("Please try again in 5 apples", None),
    ],
)
def test_a_wait_that_only_words_tell(words: str, seconds: float | None) -> None:
    """OpenAI and Groq write it into the message; a header that tells more counts first."""
    assert asked_wait({}, {}, words, 0.0) == seconds
    assert asked_wait({"Retry-After": "3"}, {}, words, 0.0) == 3.0
    assert from_status(429, {"error": {"message": words}}, TARGET).retry_after == seconds


@given(st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms"]), st.text() | st.floats().map(str)), st.text())
def test_no_wait_is_without_bounds(headers: dict[str, str], words: str) -> None:
    """Whatever a server writes there."""
    wait = asked_wait(headers, {}, words, 0.0)
    assert wait is None or 0.0 <= wait <= LONGEST


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 501])
def test_errors_that_stay_are_not_tried_again(status: int) -> None:
    """The key, the bill and the request are no better a second later."""
    assert not is_transient(from_status(status, {"error": {"message": "no"}}, TARGET, {"Retry-After": "1"}))


@pytest.mark.parametrize("status", [None, 400, 429])
@pytest.mark.parametrize(
    "words",
    [
        "Too many tokens, please wait before trying again.",
        "ThrottlingException: Too many tokens per day, please wait",
        "Rate limit reached for m-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
    ],
)
def test_fault_98_throttling_by_tokens_is_waited_for(status: int | None, words: str) -> None:
    """In a stream, by a gateway that says 400, and as it should be."""
    problem = from_status(status, {"error": {"message": words}}, TARGET)
    assert problem.kind == "rate_limited" and is_transient(problem)

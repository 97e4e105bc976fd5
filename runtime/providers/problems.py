"""What went wrong with a call, as a `Problem`: for a person, a program, and a bug report. Pure.

Statuses, bodies and exceptions of any provider come in. Nothing here imports an SDK: exceptions are told apart
by their class names and by what caused them, which both SDKs and their HTTP library share.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .base import Problem, ProblemKind
from .overflow import Overflow, find_overflow
from .redact import redact
from .waits import asked_wait

#: What may pass by itself. Everything else stays wrong however often it is sent.
TRANSIENT: frozenset[ProblemKind] = frozenset({"rate_limited", "overloaded", "network"})

_DETAIL = 2000  # characters of a body that a bug report carries
_REFUSED = re.compile(
    r"content.?(?:filter|policy|management)|safety system|output blocked|policy.violation|bio_policy|our usage polic",
    re.IGNORECASE,
)
_BROKE = re.compile(r"insufficient.?(?:quota|balance|credit)|credit balance|billing_error", re.IGNORECASE)
#: As Ollama, llama.cpp, vLLM and OpenRouter say it.
_NO_TOOLS = re.compile(
    r"not support (?:tools|tool use|function calling)|requires --jinja|--enable-auto-tool-choice"
    r"|no endpoints found that support tool use",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]*>")
_OVERLOADED = re.compile(r"overload|unavailable|capacity|server.?error", re.IGNORECASE)
#: Some gateways say it with a 400, and inside a stream there is no status at all.
_THROTTLED = re.compile(
    r"rate.?limit(?!ed to)|too many requests|throttl|too many tokens, please wait|tokens per (?:min|day)", re.IGNORECASE
)
_TOO_LARGE_FOR_RATE = re.compile(r"request too large for .*?(?:TPM|per min)", re.IGNORECASE | re.DOTALL)

#: What is raised while there is no connection yet: by the HTTP library, and by the system.
_UNSENT = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "InvalidURL", "UnsupportedProtocol", "LocalProtocolError"}
)
_NO_CONNECTION = (ConnectionRefusedError, ssl.SSLCertVerificationError, socket.gaierror)


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a call went to: for texts. `key_variable` is the environment variable that holds its key."""

    provider: str
    url: str
    model: str = ""
    key_variable: str | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def place(self) -> str:
        """The URL as people may see it."""
        return redact(self.url.split("?")[0], self.secrets)


def is_transient(problem: Problem) -> bool:
    return problem.kind in TRANSIENT


def may_be_overflow(problem: Problem, tokens: int, window: int) -> bool:
    """Whether a refused request of about `tokens` counts as too large although nobody said so: it is near the limit."""
    return problem.kind == "bad_request" and problem.status in (400, 413, 422, 500) and tokens >= 0.9 * window


def from_status(
    status: int | None, body: Any, target: Target, headers: Mapping[str, str] | None = None, now: float = 0.0
) -> Problem:
    """The problem that an error response tells. `body` is parsed JSON or text; `now` is seconds since 1970.

    `status` is None for an error inside a stream that did not name one.
    """
    headers = headers or {}
    fields = error_fields(body)
    message = redact(_message(fields, body), target.secrets)
    overflow = find_overflow(message, fields, status)
    if overflow is None and status == 413 and not _TOO_LARGE_FOR_RATE.search(message):
        overflow = Overflow()
    kind = "overflow" if overflow else _kind(status, message, fields, headers)
    return Problem(
        kind=kind,
        text=_text(kind, status, message, fields, target, overflow),
        status=status,
        detail=redact(body if isinstance(body, str) else json.dumps(body, default=str), target.secrets)[:_DETAIL],
        retry_after=asked_wait(headers, fields, message, now),
        window=overflow.window if overflow else None,
        prompt=overflow.prompt if overflow else None,
    )


def from_exception(error: BaseException, target: Target, timeout: float = 0.0) -> Problem:
    """The problem of a call that got no whole answer. `timeout` is the seconds that it was given."""
    chain = list(_chain(error))
    names = {cls.__name__ for each in chain for cls in type(each).__mro__}
    kind: ProblemKind = "network"
    if any(isinstance(each, ConnectionRefusedError) for each in chain):
        text = f"cannot connect to {target.place}: nothing answers there. Is the server running?"
    elif any(isinstance(each, ssl.SSLCertVerificationError) for each in chain):
        kind = "bad_request"
        text = f"{target.place} has a certificate that this machine does not trust"
    elif any(isinstance(each, socket.gaierror) for each in chain):
        text = f"the name in {target.place} cannot be resolved. Is the network up, and the URL right?"
    elif names & {"InvalidURL", "UnsupportedProtocol", "LocalProtocolError", "TooManyRedirects"}:
        kind = "bad_request"
        text = f"the request could not be sent to {target.place}. Check the base_url and the key"
    elif "ConnectTimeout" in names:
        text = f"{target.place} did not take the connection in time. Is the URL right?"
    elif "PoolTimeout" in names:
        text = f"too many calls to {target.place} at once"
    elif names & {"ReadTimeout", "TimeoutException", "APITimeoutError"}:
        text = f"{target.provider} sent nothing for {timeout:g} seconds"
    elif "ConnectError" in names:
        text = f"cannot connect to {target.place}"
    else:
        text = f"the connection to {target.provider} broke before the reply was whole"
    detail = "; ".join(dict.fromkeys(f"{type(each).__name__}: {each}" for each in chain))
    unsent = bool(names & _UNSENT) or any(isinstance(each, _NO_CONNECTION) for each in chain)
    return Problem(kind=kind, text=text, detail=redact(detail, target.secrets)[:_DETAIL], unsent=unsent)


def unsendable(error: Exception, target: Target) -> Problem:
    """The request could not even be made: text that is not Unicode, an illegal key or URL, a missing package."""
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        text = f"the request to {target.provider} holds text that is not valid Unicode"
    elif isinstance(error, ImportError):
        text = f"a package that {target.provider} needs cannot be imported: {error}"
    else:
        text = f"the request to {target.provider} could not be made. Check the base_url and the key"
    detail = redact(f"{type(error).__name__}: {error}", target.secrets)[:_DETAIL]
    return Problem("bad_request", text, detail=detail, unsent=True)


def cut_short(target: Target, detail: str = "") -> Problem:
    """The stream ended, or turned to nonsense, before the reply did."""
    text = f"the reply from {target.provider} broke off before its end"
    return Problem("network", text, detail=redact(detail, target.secrets)[:_DETAIL])


def not_a_model(target: Target, content_type: str, start: str) -> Problem:
    """Something answered well, but in no form that a model's server uses."""
    what = "a web page" if "html" in content_type or start.lstrip()[:1] == "<" else content_type or "something else"
    text = f"{target.place} answered with {what}, not with a model's reply. Check the base_url (most end in /v1)"
    return Problem("bad_request", text, status=200, detail=redact(start, target.secrets)[:_DETAIL])


def error_fields(body: Any) -> dict[str, Any]:
    """The error object of a body, wherever the provider puts it; empty where there is none."""
    if isinstance(body, list) and body:
        body = body[0]  # Gemini
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error")
    if isinstance(inner, Mapping):
        return dict(inner)
    if isinstance(inner, str):
        return {**body, "message": inner}
    return dict(body)


def _message(fields: dict[str, Any], body: Any) -> str:
    for key in ("message", "detail", "msg"):
        value = fields.get(key)
        if isinstance(value, str) and value:
            break
        if value:
            value = json.dumps(value, default=str)
            break
    else:
        if not isinstance(body, str):
            value = ""
        elif title := re.search(r"<title[^>]*>(.*?)</title>", body, re.IGNORECASE | re.DOTALL):
            value = title[1]
        else:
            value = _TAG.sub(" ", body) if body.lstrip()[:1] == "<" else body  # a gateway's page without a title
    metadata = fields.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if raw:  # OpenRouter: what the provider behind it said
        value = f"{value}: {raw if isinstance(raw, str) else json.dumps(raw, default=str)}"
    return " ".join(value.split())[:500]


def _kind(status: int | None, message: str, fields: dict[str, Any], headers: Mapping[str, str]) -> ProblemKind:
    said = f"{fields.get('type')} {fields.get('code')} {message}"
    if status in (401, 402, 403) or _BROKE.search(said):
        return "auth"
    if _TOO_LARGE_FOR_RATE.search(message):
        return "bad_request"  # larger than a minute's allowance: waiting never helps
    if _REFUSED.search(said) and (status is None or status < 429):
        return "refused"
    if status == 429 or (status in (None, 400) and _THROTTLED.search(said)):
        return "rate_limited"
    if status == 408:
        return "network"
    asked = {key.lower(): value for key, value in headers.items()}.get("x-should-retry")
    if asked in ("true", "false"):
        return "overloaded" if asked == "true" else "bad_request" if status and status < 500 else "unknown"
    if status in (409, 425) or (status is not None and status >= 500 and status != 501):
        return "overloaded"
    if status is None:
        return "overloaded" if _OVERLOADED.search(said) else "unknown"
    return "bad_request" if 300 <= status < 500 else "unknown"


def _text(
    kind: ProblemKind,
    status: int | None,
    message: str,
    fields: Mapping[str, Any],
    target: Target,
    overflow: Overflow | None,
) -> str:
    who = target.provider
    said = f": {message}" if message else ""
    code = f" ({status})" if status else ""
    if kind == "overflow":
        sizes = ""
        if overflow and overflow.window:
            prompt = f"{overflow.prompt:,} tokens for " if overflow.prompt else ""
            sizes = f" ({prompt}a window of {overflow.window:,})"
        return f"the prompt is larger than {target.model or 'the model'} takes{sizes}"
    if kind == "bad_request" and target.model and _NO_TOOLS.search(message):
        off = f'[models."{who}/{target.model}"] tools = false'
        return f"{who} refused the request{code}, as {target.model} takes no tools there. Turn them off: {off}{said}"
    if kind == "auth" and (status == 402 or _BROKE.search(f"{fields.get('type')} {fields.get('code')} {message}")):
        return f"the account at {who} has no credit left{code}{said}"
    if kind == "auth":
        if target.key_variable is None and not target.secrets:
            return (
                f"{who} wants a key, and none was sent{code}. Name its variable as key_env in [providers.{who}]{said}"
            )
        key = f"Check {target.key_variable}" if target.key_variable else "Check the key"
        return f"{who} refused the key{code}. {key}{said}"
    if status is not None and 300 <= status < 400:
        return f"{target.place} redirects elsewhere. Put the final URL into base_url (keys do not follow redirects)"
    if status == 404:
        return (
            f"{who} does not know {target.model or 'this'} at {target.place}. Check the model's name and base_url{said}"
        )
    if kind == "rate_limited":
        return f"{who} limits how much may be asked of it now{code}{said}"
    if kind == "overloaded":
        return f"{who} failed or is overloaded{code}{said}"
    if kind == "refused":
        return f"{who} refused this content{code}{said}"
    return f"{who} refused the request{code}{said}" if kind == "bad_request" else f"{who} failed{code}{said}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and what groups of them hold."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        waiting.extend(link for link in (each.__cause__, each.__context__) if link is not None)

"""Anthropic Messages, over the official SDK (and MiniMax, which speaks the same protocol)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from governors.wire.anthropic_tools import takes_changes

from .assemble import Assembler
from .assemble_anthropic import AnthropicAssembler
from .base import ModelInfo, Request
from .transport import NetworkProvider, http_client

#: A field of the body, as (outer, inner), and the beta header without which the API refuses it.
BETAS: dict[tuple[str, str], str] = {
    ("thinking", "block_binding"): "thinking-binding-controls-2026-08-01",
}

#: For models whose tools may come and go inside the conversation. It is sent with each of their requests, as a change
#: stays in the conversation once it was made.
TOOL_CHANGES = "inline-tools-2026-09-15"


class Anthropic(NetworkProvider):
    """A provider for `wire="anthropic"`. Without `base_url` it is api.anthropic.com (or ANTHROPIC_BASE_URL)."""

    path = "/v1/messages"

    def make_client(self) -> Any:
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(
            api_key=self.api_key or "none",  # else the SDK looks for credentials of its own
            base_url=self.base_url,
            max_retries=0,
            open_telemetry=False,
            http_client=http_client(self.base_url),
        )

    def make_assembler(self, model: ModelInfo) -> Assembler:
        return AnthropicAssembler(model)

    def request_headers(self, request: Request) -> dict[str, str]:
        headers = super().request_headers(request)
        betas = [beta for (outer, inner), beta in BETAS.items() if _has(request.body, outer, inner)]
        if takes_changes(request.model.abilities):
            betas.append(TOOL_CHANGES)
        if betas:
            headers["anthropic-beta"] = ",".join(betas)
        return headers


def _has(body: Mapping[str, Any], outer: str, inner: str) -> bool:
    value = body.get(outer)
    return isinstance(value, Mapping) and inner in value

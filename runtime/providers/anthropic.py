"""Anthropic Messages, over the official SDK (and MiniMax, which speaks the same protocol)."""

from __future__ import annotations

from typing import Any

from governors.wire.anthropic_tools import takes_changes

from .assemble import Assembler
from .assemble_anthropic import AnthropicAssembler
from .base import ModelInfo, Request
from .transport import NetworkProvider

#: The header without which the API refuses the field, and the field. A request has it where the model's abilities say
#: so; where somebody else put it, it stands beside the messages, so that the ends of the body tell.
BINDING = ("thinking-binding-controls-2026-08-01", b'"block_binding"')

_ENDS = 4096  # bytes of a body that are looked at

#: For models whose tools may come and go inside the conversation. It is sent with each of their requests, as a change
#: stays in the conversation once it was made.
TOOL_CHANGES = "inline-tools-2026-09-15"

#: For requests that ask for a compaction or hold one. No text of a body can hold these bytes, as its quotation marks
#: are escaped; in the arguments of a call they do no harm.
COMPACTION = ("compact-2026-09-04", (b'"type":"compaction"', b'"compaction":{"type":"summarize"'))


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
            http_client=self.http_client(),
        )

    def make_assembler(self, model: ModelInfo) -> Assembler:
        return AnthropicAssembler(model)

    def request_headers(self, request: Request) -> dict[str, str]:
        headers = super().request_headers(request)
        beta, field = BINDING
        content = request.content
        bound = request.model.abilities.drop_block or field in content[:_ENDS] or field in content[-_ENDS:]
        betas = [beta] if bound else []
        if takes_changes(request.model.abilities):
            betas.append(TOOL_CHANGES)
        beta, signs = COMPACTION
        if request.model.abilities.compaction and any(sign in content for sign in signs):
            betas.append(beta)
        if betas:
            headers["anthropic-beta"] = ",".join(betas)
        return headers

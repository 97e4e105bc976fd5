"""Chat Completions: OpenAI and every server that speaks its protocol, over the official SDK."""

from __future__ import annotations

from typing import Any

from .assemble import Assembler
from .assemble_chat import ChatAssembler
from .base import ModelInfo, Request
from .transport import NetworkProvider

#: Sent where a server needs no key: the SDK insists on one.
NO_KEY = "none"


class OpenAIChat(NetworkProvider):
    """A provider for `wire="openai_chat"`. Without `base_url` it is api.openai.com (or OPENAI_BASE_URL)."""

    path = "/chat/completions"

    def make_client(self) -> Any:
        from openai import AsyncOpenAI

        client = AsyncOpenAI(
            api_key=self.api_key or NO_KEY,
            base_url=self.base_url,
            max_retries=0,
            http_client=self.http_client(),
        )
        if self.base_url is not None:  # the environment's OpenAI account is nobody else's business
            client.organization = None
            client.project = None
        return client

    def make_assembler(self, model: ModelInfo) -> Assembler:
        return ChatAssembler(model)

    def transport_fields(self, request: Request) -> dict[str, Any]:
        fields = super().transport_fields(request)
        if fields and request.model.abilities.stream_usage:
            fields["stream_options"] = {"include_usage": True}
        return fields

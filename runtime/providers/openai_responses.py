"""Responses: OpenAI's newer protocol, and the servers that speak it too, over the official SDK."""

from __future__ import annotations

from typing import Any

from .assemble import Assembler
from .assemble_responses import ResponsesAssembler
from .base import ModelInfo, Request
from .openai_chat import OpenAIChat
from .transport import NetworkProvider


class OpenAIResponses(OpenAIChat):
    """A provider for `wire="openai_responses"`: the client, the account and the key are those of Chat Completions.

    Without `base_url` it is api.openai.com (or OPENAI_BASE_URL). Nothing is stored at the provider: the body says so.
    """

    path = "/responses"

    def make_assembler(self, model: ModelInfo) -> Assembler:
        return ResponsesAssembler(model)

    def transport_fields(self, request: Request) -> dict[str, Any]:
        return NetworkProvider.transport_fields(self, request)  # usage comes without being asked for

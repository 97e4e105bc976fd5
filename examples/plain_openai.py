"""Governors inside plain `openai` code: your own loop, your own list of dicts, and a request that is always legal.

    OPENAI_API_KEY=... python examples/plain_openai.py     # or OPENAI_BASE_URL=http://localhost:11434/v1 for Ollama

Without either it talks to a stand-in on this machine, so that it runs anywhere.
"""

import os
from collections.abc import Callable
from typing import Any

from governors import WIRES, Abilities, Budget, Decision, govern, load_vocabulary

WIRE, ABILITIES = WIRES["openai_chat"], Abilities()
BUDGET = Budget(window=8_000, max_output=500)


def chat(ask: Callable[[list[dict[str, Any]]], str], questions: list[str]) -> list[dict[str, Any]]:
    """Ask one question after the other; the history is kept whole, and what is sent is governed."""
    history: list[dict[str, Any]] = [{"role": "system", "content": "You are a helpful assistant."}]
    kept: list[Decision] = []
    for question in questions:
        history.append({"role": "user", "content": question})
        decoded = WIRE.decode(history)
        governed = govern(decoded.messages, budget=BUDGET, system=decoded.system, decisions=kept)
        kept += governed.decisions
        payload = WIRE.encode(governed.messages, system=decoded.system, tools=(), abilities=ABILITIES)
        assert not WIRE.check({"model": "any", **payload}, ABILITIES)
        answer = ask(payload["messages"])
        history.append({"role": "assistant", "content": answer})
        print(f"{len(history):>3} messages kept, {len(payload['messages']):>3} sent, {governed.report.after:>5} tokens")
        for action in governed.report.actions:
            print(f"    {action.governor}: {action.what}, because {action.why}")
    return history


def real_model() -> Callable[[list[dict[str, Any]]], str]:
    from openai import OpenAI

    client, model = OpenAI(), os.environ.get("OPENAI_MODEL", "gpt-6.1-sol")

    def ask(messages: list[dict[str, Any]]) -> str:
        reply = client.chat.completions.create(model=model, messages=messages)  # type: ignore[arg-type] # plain dicts
        return reply.choices[0].message.content or ""

    return ask


if __name__ == "__main__":
    load_vocabulary()
    questions = [f"Question {number}: " + "please think about this at length. " * 60 for number in range(24)]
    has_model = "OPENAI_API_KEY" in os.environ or "OPENAI_BASE_URL" in os.environ
    chat(real_model() if has_model else lambda messages: "An answer. " * 40, questions)

"""Strict servers on loopback: one module a protocol, each refusing what its provider refuses, in its provider's words.

They are written from the providers' documentation and from refusals that people reported, and use nothing of
`governors.wire`: a mistake in our checkers must not be able to hide in them. `tests/servers.py` is the HTTP below.

- `anthropic.py` (rules in `anthropic_rules.py`, what each model takes in `claude.py`), `chat.py` (rules in
  `chat_rules.py`, hosts in `chat_hosts.py`), `responses.py` (rules in `responses_rules.py`).
- `mind.py` is the model behind all of them: seeded, it calls tools in every way in which models do.
- `prefix_cache.py` is the prompt cache that usage is told from.
- `conversation.py` holds a random conversation through a whole runtime.
"""

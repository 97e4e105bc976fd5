"""Hooks: where code of others takes part in a conversation. `docs/extending.md` tells how to write one.

Laws: a hook gets copies and a frozen context; what it changes is in the log before it has an effect; one that fails,
hangs or gives back what cannot be used is reported once and passed over, and never ends a turn.
"""

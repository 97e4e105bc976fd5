"""One module a protocol: `encode` messages into a body, `check` a body by the protocol's rules."""

"""What the runtime raises on purpose, split by whose fault it is.

`str()` of each is a sentence for a person: what happened, with the path or the numbers, and what to do next.
The command line prints that sentence and nothing else.
"""

from __future__ import annotations


class MoonwakeError(Exception):
    """The base of everything the runtime raises on purpose."""


class ConfigError(MoonwakeError):
    """A setting is wrong, unknown or missing; the text names the file and the key."""


class WorkspaceError(MoonwakeError):
    """A workspace is missing, unwritable or not a folder."""


class SessionError(MoonwakeError):
    """A session cannot be opened, read or written."""


class SessionLocked(SessionError):
    """Another process is writing this session."""


class ModelUnavailable(MoonwakeError):
    """No model can be reached; the text says what to install or set."""


class TurnFailed(MoonwakeError):
    """A turn ended without an answer; the text says why."""


class ToolError(MoonwakeError):
    """A tool refuses or fails; the text goes to the model as an error result."""

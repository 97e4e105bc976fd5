"""What a channel needs of the runtime it stands in. `Runtime` is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..providers.base import ChosenModel
from ..supervisor import Supervisor
from ..workspace import Workspace


class Host(Protocol):
    @property
    def workspace(self) -> Workspace: ...

    @property
    def supervisor(self) -> Supervisor: ...

    @property
    def notes(self) -> Sequence[str]:
        """What a person should know of how the runtime was set up, a sentence each."""
        ...

    async def choose(self, wanted: str) -> ChosenModel:
        """Another model, by `provider/model`; whoever holds the runtime closes it. Raises `ModelUnavailable`."""
        ...

"""The models that step in for one that cannot answer now, opened when they are first needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import anyio

from .providers.base import ChosenModel


class Opener:
    """Opens the model `name` once, by `choose`, for all agents of a runtime."""

    def __init__(self, name: str, choose: Callable[[str], Awaitable[ChosenModel]]) -> None:
        self._name, self._choose = name, choose
        self._opening = anyio.Lock()
        self.model: ChosenModel | None = None

    async def __call__(self) -> ChosenModel:
        """Raises `ModelUnavailable` and `ConfigError`."""
        async with self._opening:
            if self.model is None:
                self.model = await self._choose(self._name)
            return self.model


def openers(names: Iterable[str], choose: Callable[[str], Awaitable[ChosenModel]]) -> tuple[Opener, ...]:
    """One for each of `names` (`provider/model`), in order."""
    return tuple(Opener(name, choose) for name in names)


async def close_opened(opened: Iterable[Opener]) -> None:
    """Close the providers of those that were needed."""
    for each in opened:
        if each.model is not None:
            await each.model.provider.close()

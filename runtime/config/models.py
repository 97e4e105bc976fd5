"""`[models."provider/id"]`: what the catalog says of a model, overridden. What is left out stays as it is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, Field, create_model

from governors.wire.base import Abilities

from .table import Number, Table


def _rising(seconds: tuple[int, ...]) -> tuple[int, ...]:
    if not seconds or min(seconds) <= 0 or list(seconds) != sorted(set(seconds)):
        raise ValueError("a list of seconds that rise, such as [300, 3600]")
    return seconds


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text


class PriceTierConfig(Table):
    """US dollars per million tokens in a call whose prompt has more than `above` tokens; what is left out rises as
    `plain` does."""

    above: int = Field(ge=1)
    plain: Number
    output: Number | None = None
    cache_read: Number | None = None
    cache_write_5m: Number | None = None
    cache_write_1h: Number | None = None


class PriceConfig(Table):
    """US dollars per million tokens. With `plain` it is a whole price; without, it changes the one that is known."""

    plain: Number | None = None
    output: Number | None = None
    cache_read: Number | None = None
    cache_write_5m: Number | None = None
    cache_write_1h: Number | None = None
    tiers: tuple[PriceTierConfig, ...] | None = None


class CacheConfig(Table):
    """What the provider keeps of prompts: seconds, whether a request may choose among them, whether a read renews
    them, and the fewest tokens that are kept."""

    lifetimes: Annotated[tuple[int, ...], AfterValidator(_rising)] | None = None
    chosen: bool | None = None
    renews: bool | None = None
    least: int | None = Field(default=None, ge=0)


def _ability_fields() -> dict[str, Any]:
    """One optional key for each ability, of its own type: a new ability can be set without a word here."""
    hints: dict[str, Any] = {name: hint for name, hint in get_type_hints(Abilities).items() if not name.startswith("_")}
    hints["id_pattern"] = Annotated[str, AfterValidator(_pattern)]
    return {name: (hint | None, None) for name, hint in hints.items()}


if TYPE_CHECKING:
    AbilitiesConfig = Table
else:
    AbilitiesConfig = create_model("AbilitiesConfig", __base__=Table, **_ability_fields())
    AbilitiesConfig.__doc__ = "Any of the abilities of `governors.wire.base.Abilities`."


class ModelConfig(Table):
    """Figures are tokens. `wire`: the protocol to speak with it, whatever is known of it."""

    wire: Literal["anthropic", "openai_chat", "openai_responses"] | None = None
    window: int | None = Field(default=None, ge=256)
    max_output: int | None = Field(default=None, ge=1)
    token_factor: float | None = Field(default=None, ge=0.5, le=4, allow_inf_nan=False)
    tools: bool | None = None
    images: bool | None = None
    thinking: Literal["none", "budget", "adaptive", "effort"] | None = None
    profile: Literal["full", "tiny"] | None = None
    reasons: bool | None = None
    price: PriceConfig | None = None
    cache: CacheConfig | None = None
    abilities: AbilitiesConfig | None = None

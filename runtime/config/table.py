"""What every table of settings is, and the values that several of them hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Table(BaseModel):
    """A table of settings. Its validator is built on first use, which keeps the import quick."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)

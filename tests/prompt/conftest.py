"""A workspace that rests."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.workspace import Workspace
from tests.prompts import workspace_in


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspace_in(tmp_path)

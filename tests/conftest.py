"""Every async test runs on both backends; properties do not fail because a machine is slow.

Properties try the same examples in every run of one version, so that a change is judged by what it changed. New
examples are looked for by `make soak`, which runs them under the profile `soak`, with a seed.
"""

import atexit
import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "moonwake", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("moonwake")

#: Runtimes of tests keep their ledger here, not where the user has theirs.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="moonwake-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend

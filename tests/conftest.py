"""Every async test runs on both backends; properties do not fail because a machine is slow."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("moonwake", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("moonwake")


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend

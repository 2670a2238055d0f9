import pytest

from tests.service.broker_processes import Forge


@pytest.fixture(scope="session")
def forge():
    """A process that starts brokers in a moment; one for all tests of a worker."""
    forge = Forge()
    yield forge
    forge.close()

"""The composition with every variable set, as a deployment would have it."""

import pytest

from tests.deploy.composition import Composition, composition

SETTINGS = {
    "POSTGRES_PASSWORD": "administrator-0123456789",
    "CITELOOP_OWNER_PASSWORD": "owner-01234567890123456789",
    "CITELOOP_APP_PASSWORD": "app-0123456789012345678901",
    "TEMPORAL_DB_PASSWORD": "temporal-0123456789012345",
    "CITELOOP_CALLBACK_BASE_URL": "https://citeloop.example.com",
}
"""What .env must hold at least."""


@pytest.fixture(scope="session")
def compose() -> Composition:
    return composition(SETTINGS)

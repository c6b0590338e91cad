from collections.abc import AsyncIterator

import pytest

from citeloop.store.database import Database
from citeloop.store.repositories.tenants import TenantRow
from tests.activities.workshop import Workshop
from tests.fixtures_sandbox import Sandbox


@pytest.fixture
async def workshop(database: Database, sandbox: Sandbox, tenant: TenantRow) -> AsyncIterator[Workshop]:
    made = Workshop(database, sandbox, tenant)
    await made.open()
    yield made
    await made.close()

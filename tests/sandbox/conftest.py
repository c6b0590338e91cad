"""One quiet sandbox for all tests of this folder, as good as new for each."""

from collections.abc import Iterator

import pytest

from tests.sandbox.running import Sandbox, running


@pytest.fixture(scope="session")
def process() -> Iterator[Sandbox]:
    with running() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(process: Sandbox) -> Sandbox:
    process.reset()
    return process

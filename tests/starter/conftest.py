"""One whole installation for the tests of the doors: real servers, a quiet sandbox, a worker, the API."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from starter import simulated
from starter.stack import Parts, Stack
from tests.installation import Installation, opened


@pytest.fixture(scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    home = tmp_path_factory.mktemp("installation")
    async with Stack(parts(home)) as running:
        yield running


@pytest.fixture(scope="session")
async def installation(stack: Stack) -> AsyncIterator[Installation]:
    """The same stack, with its store and the sandbox's ledger at hand."""
    async with opened(stack) as made:
        yield made


def parts(home: Path, *, worker: bool = True, api: bool = True) -> Parts:
    return Parts(
        home=home,
        channels=fast_channels(home),
        sandbox=simulated.ROOT / "sandbox" / "quiet.toml",
        worker=worker,
        api=api,
        env=simulated.ENVIRONMENT,
    )


def fast_channels(folder: Path) -> Path:
    """The sandbox's channels with room to hurry."""
    text = (simulated.CHANNELS).read_text()
    file = folder / "channels.toml"
    file.write_text(re.sub(r'(?m)^rate = ".*"', 'rate = "50/s"', text))
    return file

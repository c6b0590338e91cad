"""One installation for each journey, and the figures of all of them at the end of the run."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from starter import simulated
from starter.stack import Parts, Stack
from tests.installation import Installation, opened

HERE = Path(__file__).parent
CHANNELS = HERE / "channels.toml"
SANDBOX = HERE / "sandbox.toml"
FIGURES = pytest.StashKey[list[str]]()

Installing = Callable[..., AbstractAsyncContextManager[Installation]]
Tell = Callable[..., None]


@pytest.fixture
def installing(tmp_path: Path) -> Installing:
    """`async with installing(worker=False) as journey:` — real processes, all of them ended after."""

    @asynccontextmanager
    async def install(
        *, worker: bool = True, api: bool = True, channels: Path = CHANNELS, sandbox: Path = SANDBOX
    ) -> AsyncIterator[Installation]:
        parts = Parts(
            home=tmp_path,
            channels=channels,
            sandbox=sandbox,
            worker=worker,
            api=api,
            env=simulated.ENVIRONMENT,
        )
        async with Stack(parts) as stack, opened(stack) as journey:
            yield journey

    return install


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Keep this journey's figures for the summary."""
    lines = request.config.stash.setdefault(FIGURES, [])

    def told(**figures: object) -> None:
        shown = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in figures.items())
        lines.append(f"{request.node.name}: {shown}")

    return told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = terminalreporter.config.stash.get(FIGURES, [])
    if lines:
        terminalreporter.section("journeys")
    for line in lines:
        terminalreporter.write_line(line)

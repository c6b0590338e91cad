"""A ticker that shows Temporal the worker is alive, whatever the provider does meanwhile."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from temporalio import activity


@contextlib.asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Beat every third of the heartbeat timeout until the block ends; a cancel arrives with a beat.

    What ends sooner costs the server no beat at all.
    """
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    ticker = asyncio.create_task(_tick(timeout.total_seconds() / 3))
    try:
        yield
    finally:
        ticker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticker


async def _tick(every: float) -> None:
    while True:
        await asyncio.sleep(every)
        activity.heartbeat()

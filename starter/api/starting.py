"""Workflows are started behind the answers, one at a time; what does not fit is the sweeper's."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from temporalio.service import RPCError

from citeloop.store.errors import StoreUnavailable

log = logging.getLogger(__name__)

Start = Callable[[], Awaitable[object]]
_WAITING = 200
"""About the sweeper's ten seconds of starts: what would wait longer, it finds first."""


class Starter:
    """`async with Starter() as starter:`, then `offer`. Nothing is lost with it: the rows are committed."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Start] = asyncio.Queue(_WAITING)
        self._hand: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._hand = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._hand is not None:
            self._hand.cancel()
            await asyncio.gather(self._hand, return_exceptions=True)

    def offer(self, start: Start) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._waiting.put_nowait(start)

    async def _work(self) -> None:
        while True:
            start = await self._waiting.get()
            began = time.monotonic()
            try:
                await start()
            except (StoreUnavailable, RPCError) as error:
                log.warning("a start is left to the sweeper: %s", error)
            except Exception:
                log.exception("a start failed and is left to the sweeper")
            # On a busy machine a start takes long: rest as long, and leave the machine to those who wait for answers.
            await asyncio.sleep(time.monotonic() - began)

"""How many calls at once this worker makes at each channel: changed while it runs, by the store's word."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.worker import (
    ActivityInboundInterceptor,
    CustomSlotSupplier,
    ExecuteActivityInput,
    FixedSizeSlotSupplier,
    Interceptor,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

from activities import failures
from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import channels

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two looks at the store."""

AGAIN = timedelta(seconds=1)
_NONE = FixedSizeSlotSupplier(2)
"""For kinds of tasks that the worker of a channel does not have."""


class Slots(CustomSlotSupplier):
    """At most `limit` permits at once.

    A poll that waits for work holds a permit too. So after the limit was lowered, the polls that are under way may
    still bring a task each: `Overhang` sends those back.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.running = 0
        """Activities that are under way."""
        self._given = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._loop = asyncio.get_running_loop()

    def change(self, limit: int) -> None:
        self.limit = limit
        self._wake()

    def tuner(self) -> WorkerTuner:
        return WorkerTuner.create_composite(
            workflow_supplier=_NONE, activity_supplier=self, local_activity_supplier=_NONE, nexus_supplier=_NONE
        )

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:  # noqa: ARG002 - the SDK's signature
        while self._given >= self.limit:
            turn: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()
                raise
        self._given += 1
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002 - the SDK's signature
        """For eager tasks, which no channel has: they would bypass its queue and its limit."""
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None: ...

    def release_slot(self, ctx: SlotReleaseContext) -> None:  # noqa: ARG002 - the SDK's signature
        """Called on threads of the SDK's own, and perhaps after the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        self._given -= 1
        self._wake()

    def _wake(self) -> None:
        free = self.limit - self._given
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class Overhang(Interceptor):
    """Sends a task back to the queue that would be one call more than the limit allows at once."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _Counted(super().intercept_activity(next), self._slots)


class _Counted(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, slots: Slots) -> None:
        super().__init__(following)
        self._slots = slots

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        if self._slots.running >= self._slots.limit:
            raise failures.limited(f"{self._slots.limit} calls are under way, which is all it may make", AGAIN)
        self._slots.running += 1
        try:
            return await super().execute_activity(input)
        finally:
            self._slots.running -= 1


class Concurrency:
    """Keeps the slots of this worker's channels as the store has them: the operator's number, else the file's."""

    def __init__(self, database: Database, by_queue: Mapping[str, Slots]) -> None:
        self._database = database
        self._by_queue = by_queue

    async def apply(self) -> None:
        async with self._database.operator() as op:
            wanted = await channels.slots(op)
        for queue, slots in self._by_queue.items():
            limit = wanted.get(queue, slots.limit)
            if limit != slots.limit:
                log.info("%s: %s calls at once instead of %s", queue, limit, slots.limit)
                slots.change(limit)

    async def run(self) -> None:
        """Until cancelled; a lost store changes nothing."""
        while True:
            with contextlib.suppress(StoreUnavailable):
                await self.apply()
            await asyncio.sleep(EVERY)

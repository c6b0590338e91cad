"""One `total` over several requests: Temporal's start-to-close knows only one."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Call

T = TypeVar("T")

_LEAST = 0.1
_OK = 200
_MOST_FAILED = 3
_PASSING = frozenset({Fault.UNAVAILABLE, Fault.OVERLOADED, Fault.TIMED_OUT, Fault.RATE_LIMITED, Fault.GARBLED})


class Patience:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._deadline = asyncio.get_running_loop().time() + call.policy.total.total_seconds()

    @property
    def left(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()

    def call(self, turn: str = "") -> Call:
        """The call with what is left of its total. `turn`: another paid request of the same purchase."""
        policy = self._call.policy.model_copy(update={"total": timedelta(seconds=max(self.left, _LEAST))})
        purchase = f"{self._call.purchase_id}/{turn}" if turn else self._call.purchase_id
        return self._call.model_copy(update={"policy": policy, "purchase_id": purchase})

    async def pause(self, seconds: float, waiting_for: str) -> None:
        """Raises TIMED_OUT instead of sleeping beyond the total."""
        if self.left <= seconds:
            total = self._call.policy.total.total_seconds()
            raise ChannelError(Fault.TIMED_OUT, f"{waiting_for} is not finished after {total:g} s (total)", sent=True)
        await asyncio.sleep(seconds)


class Polling:
    """Asking what became of a job until it is done or the call's total is over: a failed question is no failed job.

    waits: seconds before the first question, and the longest; each is half as long again as the one before.
    """

    def __init__(self, patience: Patience, waiting_for: str, *, first: float, longest: float) -> None:
        self._patience = patience
        self._waiting_for = waiting_for
        self._wait = first
        self._longest = longest
        self._failed = 0

    async def ask(self, question: Callable[[Call], Awaitable[T]]) -> T | None:
        """None for a question that failed in passing; the error itself when it failed for good, or too often."""
        await self._patience.pause(self._wait, self._waiting_for)
        self._wait = min(self._wait * 1.5, self._longest)
        try:
            return await question(self._patience.call())
        except ChannelError as error:
            # What became of the job is told under HTTP 200; any other status is about the question.
            self._failed += 1
            if error.status == _OK or error.fault not in _PASSING or self._failed > _MOST_FAILED:
                raise
            return None

"""The exit code tells the truth, although the native runtime sometimes aborts at interpreter exit."""

import asyncio
from collections import Counter

import pytest

from starter.stack import Stack
from tests.starter.cli import citeloop


async def _codes(stack: Stack, runs: int) -> Counter[int]:
    """`channels` talks to Postgres and to Temporal; two at a time, as on a small machine."""
    slots = asyncio.Semaphore(2)

    async def once() -> int:
        async with slots:
            ran = await citeloop("channels", "--json", home=stack.home)
            return ran.code if ran.json else -1

    return Counter(await asyncio.gather(*(once() for _ in range(runs))))


async def test_thirty_runs_end_with_code_0(stack: Stack) -> None:
    assert await _codes(stack, 30) == {0: 30}


@pytest.mark.journey
async def test_three_hundred_runs_end_with_code_0(stack: Stack) -> None:
    assert await _codes(stack, 300) == {0: 300}

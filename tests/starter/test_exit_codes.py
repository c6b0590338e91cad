"""The exit code tells the truth, although the native runtime sometimes aborts at interpreter exit."""

import asyncio
from collections import Counter

import pytest

from starter.stack import Stack
from tests.starter.cli import citeloop


async def _ends(stack: Stack, runs: int) -> Counter[tuple[int, str]]:
    """`channels` talks to Postgres and to Temporal; two at a time, as on a small machine."""
    slots = asyncio.Semaphore(2)

    async def once() -> tuple[int, str]:
        async with slots:
            ran = await citeloop("channels", "--json", home=stack.home)
        return ran.code, ran.err or ("listed" if '"deepseek"' in ran.out else ran.out)

    return Counter(await asyncio.gather(*(once() for _ in range(runs))))


@pytest.mark.timeout(480)
async def test_thirty_runs_end_with_code_0(stack: Stack) -> None:
    assert await _ends(stack, 30) == {(0, "listed"): 30}


@pytest.mark.journey
@pytest.mark.timeout(1500)
async def test_three_hundred_runs_end_with_code_0(stack: Stack) -> None:
    assert await _ends(stack, 300) == {(0, "listed"): 300}

"""The exit code tells the truth, although the native runtime sometimes aborts at interpreter exit."""

import asyncio
from collections import Counter

import pytest

from starter.stack import Stack
from tests.starter.cli import installed_citeloop


async def _ends(stack: Stack, runs: int) -> Counter[tuple[int, str]]:
    """`channels` talks to Postgres and to Temporal; two at a time, as on a small machine."""
    slots = asyncio.Semaphore(2)

    async def once() -> tuple[int, str]:
        async with slots:
            ran = await installed_citeloop("channels", "--json", home=stack.home)
        return ran.code, ran.err or ("listed" if '"deepseek"' in ran.out else ran.out)

    return Counter(await asyncio.gather(*(once() for _ in range(runs))))


async def test_ten_runs_end_with_code_0(stack: Stack) -> None:
    assert await _ends(stack, 10) == {(0, "listed"): 10}


@pytest.mark.journey
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fifty", range(6))
async def test_three_hundred_runs_end_with_code_0(stack: Stack, fifty: int) -> None:
    """In six parts, which can be shared among test processes."""
    assert await _ends(stack, 50) == {(0, "listed"): 50}

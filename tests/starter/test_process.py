"""A child process: how it starts, fails, is recognised and ends."""

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from starter.embedded.process import Child, Program, StartError, command_line, keep_alive

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


async def healthy() -> bool:
    return True


async def never() -> bool:
    return False


async def test_a_child_that_dies_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    child = Child(Program("doomed", (sys.executable, "-c", "raise SystemExit('no such key')")), tmp_path, never)
    with pytest.raises(StartError, match=r"doomed ended while starting.*no such key"):
        await child.start()


async def test_a_child_that_never_answers_is_ended_and_reported(tmp_path: Path) -> None:
    program = Program("silent", SLEEPER, start_within=timedelta(seconds=0.3))
    child = Child(program, tmp_path, never)
    with pytest.raises(StartError, match="silent did not answer"):
        await child.start()
    assert not child.alive()


async def test_a_stale_child_of_a_killed_supervisor_is_ended_before_the_new_one_starts(tmp_path: Path) -> None:
    stale = Child(Program("one", SLEEPER), tmp_path, healthy)
    await stale.start()
    while not command_line(stale.pid or 0):  # for a moment after it was started, a process has none
        await asyncio.sleep(0.01)
    fresh = Child(Program("one", SLEEPER), tmp_path, healthy)
    await fresh.start()
    assert stale.pid is not None
    assert command_line(stale.pid) == ""
    assert fresh.alive()
    await fresh.stop()


async def test_a_reused_pid_is_never_ended(tmp_path: Path) -> None:
    stranger = await asyncio.create_subprocess_exec(*SLEEPER)
    (tmp_path / "one.pid").write_text(f'{{"pid": {stranger.pid}, "argv": ["something", "else"]}}')
    child = Child(Program("one", SLEEPER), tmp_path, healthy)
    await child.start()
    await child.stop()
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()


async def test_a_child_deaf_to_sigterm_is_killed(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    )
    program = Program("deaf", (sys.executable, "-c", deaf), stop_within=timedelta(seconds=0.3))

    async def ready() -> bool:
        return "up" in child.log_file.read_text()

    child = Child(program, tmp_path, ready)
    await child.start()
    await child.stop()
    assert not child.alive()
    assert not child.pid_file.exists()


async def test_a_child_that_keeps_dying_is_restarted_each_time(tmp_path: Path) -> None:
    child = Child(Program("mortal", SLEEPER), tmp_path, healthy)
    await child.start()
    came_back = asyncio.Event()
    watching = asyncio.create_task(keep_alive("mortal", child, came_back.set))
    for _ in range(2):
        came_back.clear()
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        async with asyncio.timeout(10):
            await came_back.wait()
    watching.cancel()
    assert child.alive()
    await child.stop()

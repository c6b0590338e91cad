"""The rivals as contenders: their processes are started, killed and started again like ours."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import jobs
from bench.jobs import Batch
from bench.judge import Judge, sandbox
from bench.terms import Terms, written
from citeloop.models.plan import Stage
from starter.embedded import ports
from starter.embedded.postgres import EmbeddedPostgres
from starter.simulated import ROOT

HERE = ROOT / "bench" / "rivals"
PYTHON = Path(os.environ.get("BENCH_RIVALS_PYTHON", ROOT / ".venv" / "rivals" / "bin" / "python"))
ASYNCIO = ("asyncio", "asyncio-sqlite")
ALL = (*ASYNCIO, "celery", "dbos")
THREADS = "-threads"
"""Celery's other pool. Under gevent nothing is delivered again while a worker lives, under threads `rate_limit` is
slow: `kill` takes the one that can recover, the other scenarios the one that is fast."""
_READY = 90.0


class Absent(RuntimeError):  # noqa: N818 - what it is
    """A rival cannot run here; the message says what to do."""


def present(name: str) -> None:
    """Raises Absent."""
    if name.removesuffix(THREADS) not in ALL:
        raise Absent(f"there is no rival {name!r}; there are {', '.join(ALL)}")
    if not PYTHON.exists():
        raise Absent(f"{name}: {PYTHON} is not there; run `make bench RIVALS=1`, which installs bench/rivals.lock")
    if name.startswith("celery") and shutil.which("redis-server") is None:
        raise Absent("celery: there is no redis-server; install Debian's redis-server (as root `make bench` does it)")


@dataclass
class Program:
    """One process of a rival. Those that take jobs over stdin answer each line with one."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    talks: bool = False
    process: asyncio.subprocess.Process | None = None

    async def start(self, folder: Path) -> None:
        with (folder / f"{self.name}.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.argv, cwd=HERE, env={**os.environ, **self.env}, start_new_session=True, limit=2**24,
                stdin=subprocess.PIPE if self.talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if self.talks else log, stderr=log,
            )  # fmt: skip
        if self.talks:
            await self.heard("ready")

    async def heard(self, word: str) -> None:
        """Other lines are skipped: a library may print a banner. TimeoutError, RuntimeError when it has ended."""
        assert self.process is not None
        assert self.process.stdout is not None
        async with asyncio.timeout(_READY):
            while line := await self.process.stdout.readline():
                if line.decode().strip() == word:
                    return
        raise RuntimeError(f"{self.name} ended before it said {word}; see its log")

    async def tell(self, line: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()
        await self.heard("accepted")

    async def end(self, number: signal.Signals) -> None:
        """The process and what it has started: all of them are in its own session."""
        if self.process is None or self.process.returncode is not None:
            return
        try:
            os.killpg(self.process.pid, number)
            async with asyncio.timeout(10):
                await self.process.wait()
        except ProcessLookupError:
            return
        except TimeoutError:
            os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()


class Rival:
    def __init__(self, name: str, terms: Terms, judge: Judge, folder: Path, stages: tuple[Stage, ...]) -> None:
        self.name = name
        self.judge = judge
        self.workers: list[Program] = []
        self.infrastructure: dict[str, int] = {}
        self._terms = terms
        self._folder = folder
        self._stages = stages
        self._submissions = 0
        self.env: dict[str, str] = {}

    @property
    def world(self) -> Path:
        return self._folder / "world.json"

    def tenant_id(self, name: str) -> str:
        return name

    def pids(self) -> dict[str, int]:
        own = {f"worker-{w.name}": w.process.pid for w in self.workers if w.process and w.process.returncode is None}
        return {**self.infrastructure, **own}

    async def submit(self, *batches_and_stages: Batch | tuple[Stage, ...], window: int = 0) -> None:
        """window: none here; a rival takes up all at once."""
        del window
        batches = [one for one in batches_and_stages if isinstance(one, Batch)]
        self._submissions += 1
        file = self._folder / f"jobs-{self._submissions}.json"
        jobs.write_for_rivals(file, jobs.for_rivals(batches, self._terms, self._stages, self.judge.url))
        if self.workers[0].talks:
            await self.workers[0].tell(str(file))
            return
        argv = (str(PYTHON), "celery_queue.py", "submit", str(file))
        process = await asyncio.create_subprocess_exec(*argv, cwd=HERE, env={**os.environ, **self.env})
        if await process.wait():
            raise RuntimeError(f"{self.name}: {' '.join(argv)} failed")

    async def start(self) -> None:
        for worker in self.workers:
            await worker.start(self._folder)

    async def kill(self) -> float:
        """All workers at once; when."""
        at = time.time()
        await asyncio.gather(*(worker.end(signal.SIGKILL) for worker in self.workers))
        return at

    async def stop(self) -> None:
        await asyncio.gather(*(worker.end(signal.SIGTERM) for worker in self.workers))


@asynccontextmanager
async def rival(name: str, terms: Terms, folder: Path, stages: tuple[Stage, ...]) -> AsyncIterator[Rival]:
    """Its workers wait for work inside; everything is ended after. Raises Absent."""
    present(name)
    sandbox_file, _ = written(terms, folder)
    async with AsyncExitStack() as stack:
        judge, pid = await stack.enter_async_context(sandbox(sandbox_file, folder))
        own = Rival(name, terms, judge, folder, stages)
        own.infrastructure["sandbox"] = pid
        jobs.write_for_rivals(own.world, jobs.for_rivals((), terms, stages, judge.url))
        if name in ASYNCIO:
            more = () if name == "asyncio" else ("--db", str(folder / "jobs.db"))
            own.workers = [Program(name, (str(PYTHON), "asyncio_queue.py", str(own.world), *more), talks=True)]
        elif name.startswith("celery"):
            pool = "threads" if name.endswith(THREADS) else "gevent"
            own.workers = await _celery(own, terms, folder, stack, pool)
        else:
            own.workers = [await _dbos(own, folder, stack)]
        stack.push_async_callback(own.stop)
        await own.start()
        if name.startswith("celery"):
            await asyncio.sleep(6)
        yield own


async def _celery(own: Rival, terms: Terms, folder: Path, stack: AsyncExitStack, pool: str) -> list[Program]:
    (port,) = ports.free(1)
    redis = Program(
        "redis",
        ("redis-server", "--port", str(port), "--bind", ports.LOOPBACK, "--dir", str(folder), "--appendonly", "yes"),
    )
    await redis.start(folder)
    stack.push_async_callback(redis.end, signal.SIGTERM)
    assert redis.process is not None
    own.infrastructure["redis"] = redis.process.pid
    own.env = {"BENCH_WORLD": str(own.world), "BENCH_REDIS": f"redis://{ports.LOOPBACK}:{port}/0"}
    await asyncio.sleep(0.5)
    made = []
    for queue in (*terms.writers, "others"):
        rate = terms.rates.get(queue)
        env = {**own.env, **({"BENCH_RATE": f"{rate:g}/s"} if rate else {})}
        argv = (
            *(str(PYTHON), "-m", "celery", "-A", "celery_queue", "worker", "-Q", queue, "-n", f"{queue}@bench"),
            *("-P", pool, "-c", "32", "--loglevel", "error", "--without-gossip", "--without-mingle"),
        )
        made.append(Program(queue, argv, env))
    return made


async def _dbos(own: Rival, folder: Path, stack: AsyncExitStack) -> Program:
    postgres = EmbeddedPostgres(folder / "postgres")
    await postgres.start()
    stack.push_async_callback(postgres.stop)
    own.infrastructure["postgres"] = postgres.pid or 0
    url = postgres.url("superuser", "dbos").replace("postgresql://", "postgresql+psycopg://")
    return Program("dbos", (str(PYTHON), "dbos_queue.py", str(own.world), url), talks=True)

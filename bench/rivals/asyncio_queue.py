"""The home-made kernel: a priority queue, a token bucket a channel, N workers; in memory, or with SQLite.

    asyncio_queue.py world.json [--db FILE] [--workers 64]

With --db every finished step is a row; a new process takes up what was waiting and what was running.
"""

import argparse
import asyncio
import itertools
import json
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import steps

ATTEMPTS = 12


class Bucket:
    """One call every 1/rate seconds; a 429 holds the whole channel."""

    def __init__(self, rate):
        self.gap = 1 / rate if rate else 0.0
        self.next = 0.0

    async def turn(self):
        now = asyncio.get_running_loop().time()
        mine = max(now, self.next)
        self.next = mine + self.gap
        await asyncio.sleep(mine - now)

    def hold(self, seconds):
        self.next = max(self.next, asyncio.get_running_loop().time() + seconds)


class Memory:
    def load(self, jobs):
        return [(job, 0, {}) for job in jobs]

    def save(self, job, place, article):
        pass


class Sqlite:
    def __init__(self, file):
        self.rows = sqlite3.connect(file, isolation_level=None)
        self.rows.execute("PRAGMA journal_mode=wal")
        self.rows.execute("PRAGMA synchronous=normal")
        self.rows.execute("CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, job TEXT, place INT, article TEXT)")

    def load(self, jobs):
        self.rows.execute("BEGIN")
        self.rows.executemany(
            "INSERT OR IGNORE INTO jobs VALUES (?, ?, 0, '{}')", [(job["id"], json.dumps(job)) for job in jobs]
        )
        self.rows.execute("COMMIT")
        found = [
            (json.loads(job), place, json.loads(article))
            for job, place, article in self.rows.execute("SELECT job, place, article FROM jobs ORDER BY rowid")
        ]
        return [row for row in found if row[1] < len(steps.stages_of(row[0]))]

    def save(self, job, place, article):
        self.rows.execute(
            "UPDATE jobs SET place = ?, article = ? WHERE id = ?", (place, json.dumps(article), job["id"])
        )


async def worker(world, http, pool, queue, buckets, store):
    loop = asyncio.get_running_loop()
    while True:
        _, _, (job, place, article) = await queue.get()
        stages = steps.stages_of(job)
        attempts = 0
        while place < len(stages) and attempts < ATTEMPTS:
            channel = steps.channel_of(job, stages[place])
            if channel:
                await buckets[channel].turn()
            try:
                article = await loop.run_in_executor(pool, steps.run, world, http, job, stages[place], article)
            except steps.Again as fault:
                attempts += not fault.limited
                if fault.limited and channel:
                    buckets[channel].hold(fault.delay)
                else:
                    await asyncio.sleep(fault.delay)
                continue
            place, attempts = place + 1, 0
            store.save(job, place, article)
        queue.task_done()


async def main(file, db, workers):
    world = json.loads(Path(file).read_text())
    store = Sqlite(db) if db else Memory()
    queue = asyncio.PriorityQueue()
    order = itertools.count()
    buckets = {name: Bucket(world["rates"].get(name)) for name in world["channels"]}
    http = steps.client(world)
    pool = ThreadPoolExecutor(workers)
    for row in store.load([]):
        queue.put_nowait((row[0]["priority"], next(order), row))
    tasks = [asyncio.create_task(worker(world, http, pool, queue, buckets, store)) for _ in range(workers)]
    print("ready", flush=True)
    reader = asyncio.StreamReader(limit=2**30)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        jobs = json.loads(Path(line.decode().strip()).read_text())["jobs"]
        known = {job["id"] for job in jobs}
        for row in store.load(jobs):
            if row[0]["id"] in known:
                queue.put_nowait((row[0]["priority"], next(order), row))
        print("accepted", flush=True)
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("world")
    parser.add_argument("--db")
    parser.add_argument("--workers", type=int, default=64)
    given = parser.parse_args()
    asyncio.run(main(given.world, given.db, given.workers))

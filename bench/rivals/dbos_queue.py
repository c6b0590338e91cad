"""DBOS on Postgres: a queue with a limiter a channel, one durable workflow an article, polling every 0.1 s.

    dbos_queue.py world.json DATABASE_URL

A faulted call is queued again on its channel's queue, so that a repeat takes its turn like any other call.
"""

import json
import sys
from pathlib import Path

import steps
from dbos import DBOS, SetWorkflowID

WORLD = json.loads(Path(sys.argv[1]).read_text())
ATTEMPTS = 12
POLL = 0.1

http = steps.client(WORLD)


def limiter(name):
    """`limit` calls in a period of one second."""
    rate = WORLD["rates"].get(name)
    return {"limit": int(rate), "period": 1.0} if rate else None


def register():
    for name in WORLD["channels"]:
        DBOS.register_queue(name, limiter=limiter(name), worker_concurrency=32, polling_interval_sec=POLL)
    DBOS.register_queue("articles", worker_concurrency=64, polling_interval_sec=POLL)


@DBOS.step()
def attempt(job, stage, article):
    """The article, or how long to wait: a fault is an answer here, not an exception to be recorded and raised."""
    try:
        return {"article": steps.run(WORLD, http, job, stage, article)}
    except steps.Again as fault:
        return {"delay": fault.delay, "limited": fault.limited}


@DBOS.workflow()
def call(job, stage, article, faults=0):
    """One call of a limited channel."""
    done = attempt(job, stage, article)
    if "article" in done:
        return done["article"]
    if faults >= ATTEMPTS:
        raise RuntimeError(f"{job['id']}: {stage} failed {faults} times")
    DBOS.sleep(done["delay"])
    again = DBOS.enqueue_workflow(job["channel"], call, job, stage, article, faults + (not done["limited"]))
    return again.get_result()


@DBOS.workflow()
def article(job):
    """The six steps; the limited ones wait in their channel's queue."""
    so_far = {}
    for stage in steps.stages_of(job):
        if steps.channel_of(job, stage):
            so_far = DBOS.enqueue_workflow(job["channel"], call, job, stage, so_far).get_result()
            continue
        for _ in range(ATTEMPTS):
            done = attempt(job, stage, so_far)
            if "article" in done:
                so_far = done["article"]
                break
            DBOS.sleep(done["delay"])
        else:
            raise RuntimeError(f"{job['id']}: {stage} failed {ATTEMPTS} times")
    return so_far.get("url", "")


def submit(jobs):
    for job in jobs:
        with SetWorkflowID(job["id"]):
            if job["six"]:
                DBOS.enqueue_workflow("articles", article, job)
            else:
                DBOS.enqueue_workflow(job["channel"], call, job, "generate", {})


if __name__ == "__main__":
    DBOS(
        config={
            "name": "bench",
            "system_database_url": sys.argv[2],
            "application_version": "1",
            "log_level": "ERROR",
            "max_executor_threads": 160,
        }
    )
    DBOS.launch()
    register()
    print("ready", flush=True)
    for line in sys.stdin:
        submit(json.loads(Path(line.strip()).read_text())["jobs"])
        print("accepted", flush=True)

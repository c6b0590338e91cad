"""Celery on Redis: one queue and one worker a channel with `rate_limit`, another for everything without a limit.

    celery_queue.py submit world.json jobs.json
    BENCH_WORLD=world.json BENCH_RATE=4/s celery -A celery_queue worker -Q deepseek -P gevent -c 32

Late acknowledgement and a short visibility timeout: what a killed worker held is delivered again.
"""

import json
import os
import sys
from pathlib import Path

import steps
from celery import Celery

WORLD = json.loads(Path(os.environ["BENCH_WORLD"]).read_text()) if "BENCH_WORLD" in os.environ else {}
OTHERS = "others"

app = Celery("bench", broker=os.environ.get("BENCH_REDIS", "redis://127.0.0.1:6379/0"))
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": 30, "polling_interval": 0.1},
    broker_connection_retry_on_startup=True,
    worker_send_task_events=False,
)
_http = []


def http():
    if not _http:
        _http.append(steps.client(WORLD))
    return _http[0]


@app.task(name="step", bind=True, max_retries=None, rate_limit=os.environ.get("BENCH_RATE"))
def step(self, job, place, article):
    stages = steps.stages_of(job)
    try:
        article = steps.run(WORLD, http(), job, stages[place], article)
    except steps.Again as fault:
        raise self.retry(countdown=fault.delay) from None
    if place + 1 < len(stages):
        send(job, place + 1, article)


def send(job, place, article):
    queue = steps.channel_of(job, steps.stages_of(job)[place]) or OTHERS
    step.apply_async((job, place, article), queue=queue)


if __name__ == "__main__":
    for job in json.loads(Path(sys.argv[2]).read_text())["jobs"]:
        send(job, 0, {})

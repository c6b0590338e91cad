"""The yardstick of the engine room: a workflow of six activities that do nothing, on the same embedded Temporal.

python -m bench.bare ADDRESS     # serves until SIGTERM
"""

import asyncio
import os
import signal
import sys
import time
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

WORKFLOWS, ACTIVITIES = "bench.bare.workflows", "bench.bare.activities"
STAGES = 6


@activity.defn(name="bench.nothing")
async def nothing(number: int) -> int:
    return number


@workflow.defn(name="BenchBare")
class Bare:
    @workflow.run
    async def run(self, _: int) -> int:
        done = 0
        for number in range(STAGES):
            done += await workflow.execute_activity(
                nothing, number, task_queue=ACTIVITIES, start_to_close_timeout=timedelta(seconds=30)
            )
        return done


async def carried_out(client: Client, number: int, window: int) -> float:
    """Workflows a second, at most `window` of them at once."""
    slots = asyncio.Semaphore(window)
    run = f"{time.time_ns()}"

    async def one(place: int) -> None:
        async with slots:
            await client.execute_workflow(Bare.run, place, id=f"bench-bare/{run}/{place}", task_queue=WORKFLOWS)

    began = time.monotonic()
    await asyncio.gather(*(one(place) for place in range(number)))
    return number / (time.monotonic() - began)


async def serve(address: str) -> None:
    client = await Client.connect(address)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    workflows = Worker(client, task_queue=WORKFLOWS, workflows=[Bare])
    activities = Worker(client, task_queue=ACTIVITIES, activities=[nothing])
    async with workflows, activities:
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
    os._exit(0)  # the native runtime may abort at interpreter exit

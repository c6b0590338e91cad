"""f. A small tenant behind a big one, weights of 3:1, and a tenant that calls everything urgent."""

import asyncio
import time

from bench.house import House
from bench.jobs import GENERATE, Batch, batch
from bench.referee import Call, Json, Ledger
from bench.scenarios.running import Run, contender
from bench.terms import Terms

TERMS = Terms(rates={"deepseek": 12, "doubao": 10, "qwen": 8}, faults=0.0)
CLOSED, WEIGHTS = "0", (3.0, 1.0)
_BACKLOG = 200
"""Of each tenant: enough in every channel's queue that none runs dry while the first calls are counted."""


async def fairness(run: Run) -> Json:
    out: Json = {}
    if run.ours:
        run.say("fairness: a few articles behind another tenant's many")
        out["citeloop"] = await _late(run, "citeloop", run.number(2000, 300))
        run.say("fairness: weights 3:1")
        out["citeloop"] |= await _weights(run)
        run.say("fairness: one tenant at top priority, one at normal")
        out["citeloop"] |= await _urgent(run)
    for name in run.rivals:
        run.say(f"fairness: {name}")
        out[name] = await _late(run, name, run.number(600, 200))
    return out


async def _late(run: Run, name: str, many: int) -> Json:
    """The small tenant arrives when the big one has had a hundredth of its calls."""
    few = run.number(20, 10)
    big, small = batch(many, "big", tenant="big"), batch(few, "small", tenant="small")
    async with contender(name, TERMS, run, GENERATE) as one:
        await one.submit(big, GENERATE)
        await one.judge.until(lambda totals: int(totals["ok"]) >= max(5, many // 100), within=120)
        arrived = time.time()
        await one.submit(small, GENERATE)
        await one.judge.until(lambda totals: int(totals["ok"]) >= many + few, within=_patience(many, name))
        ledger = await one.judge.ledger()
        own, others = _of(ledger, one.tenant_id("small")), _of(ledger, one.tenant_id("big"))
    finished = _paid_at(own)
    if len(finished) < few:
        return {"late_tenant_finished": False, "late_tenant_paid": len(finished)}
    end = finished[-1]
    used = sum(at <= end for at in _paid_at(others))
    return {
        "late_tenant_finished": True,
        "late_tenant_s": round(end - arrived, 2),
        "big_tenant_used": round(used / many, 4),
        "small_tenants_finish": round((end - ledger.calls[0].at) / (many + few) * TERMS.summed, 4),
    }


def _patience(many: int, name: str) -> float:
    """Ours need not be waited for to the end of the big tenant; whoever serves in order must be."""
    return 15 + many / TERMS.summed * (0.4 if name == "citeloop" else 2.0)


async def _weights(run: Run) -> Json:
    """Both backlogs stand before the first call; the first calls of all are counted."""
    heavy, light = (
        batch(run.number(300, 150), f"weight {weight:g}", tenant=f"weight-{weight:g}", weight=weight)
        for weight in WEIGHTS
    )
    calls = run.number(160, 80)
    raced = await _raced(run, (heavy, light), calls=calls)
    counted = [sum(at <= sorted(raced[0] + raced[1])[calls - 1] for at in times) for times in raced]
    return {"weights": "3:1", "served": counted, "ratio": round(counted[0] / max(1, counted[1]), 2)}


async def _urgent(run: Run) -> Json:
    urgent = batch(run.number(200, 100), "urgent", tenant="urgent", priority=1)
    normal = batch(20, "normal", tenant="normal", priority=3)
    others, mine = await _raced(run, (urgent, normal), calls=run.number(120, 80))
    if len(mine) < len(normal.keywords):
        return {"normal_finished": False, "urgent_before_normal_finished": None}
    ahead = sum(at <= mine[-1] for at in others)
    return {"normal_finished": True, "urgent_before_normal_finished": ahead}


async def _raced(run: Run, batches: tuple[Batch, ...], *, calls: int) -> list[list[float]]:
    """All channels closed until every tenant's work waits; then open until so many calls were paid.

    When each batch's calls were paid.
    """
    async with contender("citeloop", TERMS, run, GENERATE) as one:
        assert isinstance(one, House)
        for name in TERMS.rates:
            await one.channels.set_rate(name, CLOSED)
        await asyncio.sleep(2)
        for work in batches:
            await one.submit(work, GENERATE, window=len(work.keywords))
        await _waiting(one, sum(min(len(work.keywords), _BACKLOG) for work in batches))
        for name in TERMS.rates:
            await one.channels.set_rate(name, None)
        await one.judge.until(lambda totals: int(totals["ok"]) >= calls, within=90)
        ledger = await one.judge.ledger()
        return [_paid_at(_of(ledger, one.tenant_id(work.tenant))) for work in batches]


async def _waiting(one: House, number: int) -> None:
    """Until so many tasks are in the queues, or a minute has passed."""
    for _ in range(60):
        if sum([await one.waiting(name) for name in TERMS.rates]) >= number:
            return
        await asyncio.sleep(1)


def _of(ledger: Ledger, tenant_id: str) -> list[Call]:
    return [call for call in ledger.calls if call.tenant == tenant_id]


def _paid_at(calls: list[Call]) -> list[float]:
    return sorted(call.ended or call.at for call in calls if call.paid)

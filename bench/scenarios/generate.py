"""a and g. One call an article at 4/3/3 calls a second with 5 % faults: how near the limit, and how much memory."""

from bench import referee
from bench.jobs import GENERATE, batch
from bench.referee import Json
from bench.scenarios.running import Run, carried_out, contender, figures, seconds_of
from bench.terms import Terms

TERMS = Terms(rates={"deepseek": 4, "doubao": 3, "qwen": 3})


async def generate(run: Run) -> Json:
    """`citeloop-2` is the same with two worker processes."""
    out: Json = {}
    for name in (*run.contenders, *(("citeloop-2",) if run.ours else ())):
        run.say(f"generate: {name}")
        work = batch(run.number(1000, 120), "generate")
        async with contender(name, TERMS, run, GENERATE) as one:
            done = await carried_out(one, work, GENERATE, run, within=seconds_of(len(work.keywords), TERMS))
        found = figures(done, TERMS, work, GENERATE)
        if "worker" in done.memory:
            found["worker_rss_growth"] = round(referee.growth(done.memory["worker"]), 4)
        out[name] = found
    if own := out.get("citeloop"):
        out["memory"] = {"worker_rss_mb": own["rss_mb"]["worker"], "worker_rss_growth": own["worker_rss_growth"]}
    return out

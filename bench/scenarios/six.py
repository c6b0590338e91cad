"""b. Whole articles through six stages at 6/5/4 calls a second; rivals do the same six steps in the same run."""

from bench.jobs import SIX, batch
from bench.referee import Json
from bench.scenarios.running import Run, carried_out, contender, figures, seconds_of
from bench.terms import Terms

TERMS = Terms(rates={"deepseek": 6, "doubao": 5, "qwen": 4}, lost_replies=0.05)


async def six(run: Run) -> Json:
    out: Json = {}
    for name in run.contenders:
        run.say(f"six: {name}")
        work = batch(run.number(300, 40), "six")
        async with contender(name, TERMS, run, SIX) as one:
            within = seconds_of(2 * len(work.keywords), TERMS)
            done = await carried_out(one, work, SIX, run, within=within, window=len(work.keywords))
        out[name] = figures(done, TERMS, work, SIX)
    return out

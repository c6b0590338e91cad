"""b. Whole articles through six stages; rivals do the same six steps in the same run.

At 6/5/4 calls a second two cores are our bottleneck; half of that they just carry.
"""

from bench.jobs import SIX, batch
from bench.referee import Json
from bench.scenarios.running import Run, carried_out, contender, figures, seconds_of
from bench.terms import Terms

TERMS = Terms(rates={"deepseek": 6, "doubao": 5, "qwen": 4}, lost_replies=0.05)
HALF = Terms(rates={"deepseek": 3, "doubao": 2.5, "qwen": 2}, lost_replies=0.05)


async def six(run: Run) -> Json:
    return await _whole_articles(run, "six", TERMS)


async def half(run: Run) -> Json:
    return await _whole_articles(run, "half", HALF)


async def _whole_articles(run: Run, scenario: str, terms: Terms) -> Json:
    out: Json = {}
    for name in run.contenders:
        run.say(f"{scenario}: {name}")
        work = batch(run.number(300, 40), scenario)
        async with contender(name, terms, run, SIX) as one:
            within = seconds_of(2 * len(work.keywords), terms)
            done = await carried_out(one, work, SIX, run, within=within, window=len(work.keywords))
        out[name] = figures(done, terms, work, SIX)
    return out

"""The bench: CiteLoop and its rivals on the same jobs, judged by the sandbox's ledger.

make bench                                  all scenarios, one run each
make bench SCENARIO=six RIVALS=1            one scenario, with the rivals
python -m bench generate --runs 3 --quick   small, medians of three
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from rich.console import Console

from bench import figures, referee, rivalry
from bench.referee import Json
from bench.scenarios.fairness import fairness
from bench.scenarios.generate import generate
from bench.scenarios.kill import kill
from bench.scenarios.live import live
from bench.scenarios.running import Run
from bench.scenarios.six import half, six
from bench.scenarios.unlimited import unlimited
from starter.simulated import ROOT

SCENARIOS: Mapping[str, Callable[[Run], Awaitable[Json]]] = {
    "generate": generate,
    "six": six,
    "half": half,
    "unlimited": unlimited,
    "kill": kill,
    "live": live,
    "fairness": fairness,
}
RESULTS = ROOT / ".citeloop" / "bench"


async def bench(
    names: list[str], runs: int, console: Console, terms: Callable[[Path, Callable[[str], None]], Run], *, quick: bool
) -> Json:
    began = time.monotonic()
    found: dict[str, Json] = {}

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:5.0f} s[/]  {text}", highlight=False)

    for name in names:
        taken = []
        for number in range(runs):
            folder = own_folder()
            try:
                say(f"{name}, run {number + 1} of {runs}")
                taken.append(await SCENARIOS[name](terms(folder, say)))
            finally:
                keep_logs(folder, name)
                shutil.rmtree(folder, ignore_errors=True)
        found[name] = referee.medians(taken)
        figures.show(console, name, found[name])
        write(name, {"runs": runs, "quick": quick, "medians": found[name], "each": taken})
    if plotted := [name for name in figures.PLOTTED if name in found]:
        (RESULTS / "bench.svg").write_text(figures.plot({name: found[name] for name in plotted}))
        console.print(f"plot: {RESULTS / 'bench.svg'}", highlight=False)
    return {
        "quick": quick,
        "runs": runs,
        "seconds": round(time.monotonic() - began),
        "load_average": round(os.getloadavg()[0], 2),
        **figures.summary(found),
    }


def own_folder() -> Path:
    """Open to others: Postgres gives up root and must still reach its data."""
    folder = Path(tempfile.mkdtemp(prefix="citeloop-bench-"))
    folder.chmod(0o755)
    return folder


def keep_logs(folder: Path, name: str) -> None:
    """What the processes wrote, the last run's only; data is thrown away."""
    kept = RESULTS / "logs" / name
    shutil.rmtree(kept, ignore_errors=True)
    for log in folder.rglob("*.log"):
        if log.stat().st_size < 20_000_000:  # noqa: PLR2004 - bytes
            place = kept / log.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, place)


def write(name: str, result: Json) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False))


def chosen_rivals(asked: str | None) -> tuple[str, ...]:
    """`all`, or names with commas; one that cannot run is a clear error."""
    if not asked:
        return ()
    names = rivalry.ALL if asked == "all" else tuple(asked.split(","))
    for name in names:
        rivalry.present(name)
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"{', '.join(SCENARIOS)}; by default all")
    parser.add_argument("--runs", type=int, default=1, help="medians of so many")
    parser.add_argument("--quick", action="store_true", help="small: shows that it works, proves nothing")
    parser.add_argument("--rivals", metavar="NAMES", help=f"all, or some of {','.join(rivalry.ALL)}")
    parser.add_argument("--rivals-only", action="store_true", help="without CiteLoop: for work on the rivals")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="cProfile our worker; one scenario at a time")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a worker that compiles everything anew is not what is deployed
    names = given.scenarios or list(SCENARIOS)
    if unknown := [name for name in names if name not in SCENARIOS]:
        parser.error(f"there is no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    try:
        rivals = chosen_rivals(given.rivals)
    except rivalry.Absent as reason:
        sys.exit(str(reason))
    console = Console(width=None if sys.stdout.isatty() else 140)

    def terms(folder: Path, say: Callable[[str], None]) -> Run:
        return Run(
            quick=given.quick, rivals=rivals, folder=folder, say=say, ours=not given.rivals_only, profile=given.profile
        )

    result = asyncio.run(bench(names, max(1, given.runs), console, terms, quick=given.quick))
    console.file.flush()
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Before a submission is accepted: the keys of everything it would use are there and are taken."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

from citeloop.channels.catalog import MissingKey, missing_keys
from citeloop.channels.errors import Fault
from citeloop.channels.outside import Outside
from citeloop.models.channel import Catalog
from citeloop.models.plan import Plan, Stage
from starter.errors import CommandError

_WAITING = {Stage.GENERATE: "writing", Stage.PUBLISH: "publishing", Stage.MONITOR: "measuring"}
"""What has to wait. A picture may be missing, and the rewriter is the writer."""
_BUSY = frozenset({Fault.RATE_LIMITED, Fault.OVERLOADED})
_SET = "it is submitted all the same; export what is missing where the workers run, unless it is set there already"
_MENDED = (
    "it is submitted all the same; mend that and see `citeloop channels check`; "
    "what was parked meanwhile goes on after `citeloop retry REF`"
)


class Preflight:
    """environ: where the keys are looked for; it must be the one that `outside` reads.

    calls: False calls nobody and refuses nothing. warn: is told, in lines, what will wait and what to do about it.
    """

    def __init__(
        self,
        outside: Outside,
        catalog: Catalog,
        environ: Mapping[str, str],
        *,
        calls: bool = True,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._outside = outside
        self._catalog = catalog
        self._environ = environ
        self._calls = calls
        self._warn = warn

    async def check(self, plan: Plan) -> None:
        """CommandError that names channel, variable and remedy. Any other trouble is left to the retries."""
        names = sorted({route.name for routes in plan.routes.values() for route in routes})
        missing = missing_keys(self._catalog, self._environ, names)
        sites = {route.name for route in plan.routes.get(Stage.PUBLISH, ())}
        if self._calls:
            problems = await self._tried(missing, [name for name in names if name not in sites])
        else:
            problems = {
                name: ", ".join(f"{one.variable} is not set here" for one in missing if one.name == name)
                for name in dict.fromkeys(one.name for one in missing)
            }
        told = list(_warnings(plan, problems))
        if told and self._warn is not None:
            self._warn("\n".join([*told, _MENDED if self._calls else _SET]))

    async def _tried(self, missing: list[MissingKey], channels: list[str]) -> dict[str, str]:
        """What is wrong with the channels that cannot be used now, by name."""
        if missing:
            raise _lacking(missing)
        probes = dict(
            zip(channels, await asyncio.gather(*(self._outside.probe(name) for name in channels)), strict=True)
        )
        refused = [name for name, probe in probes.items() if probe.fault is Fault.UNAUTHORIZED]
        if refused:
            first, *others = refused
            too = f"; so it is with {', '.join(others)}" if others else ""
            leave = "them" if others else "it"
            raise CommandError(
                f"{probes[first].problem}{too}", f"channel {first}", f"or leave {leave} out, or use --no-check"
            )
        return {
            name: probe.problem.removeprefix(f"{name}: ")
            for name, probe in probes.items()
            if not probe.ok and probe.fault not in _BUSY
        }


def _lacking(missing: Sequence[MissingKey]) -> CommandError:
    """All at once: whoever exports one and tries again would only meet the next."""
    users: dict[str, list[str]] = {}
    for one in missing:
        users.setdefault(one.variable, []).append(one.name)
    if len(missing) == 1:
        (lacking,) = missing
        remedy = f"export {lacking.variable}, or leave {lacking.name} out, or use --no-check if the workers have it"
        return CommandError(f"{lacking.variable} is not set", lacking.name, remedy)
    said = ", ".join(f"{variable} ({', '.join(names)})" for variable, names in users.items())
    verb, them = ("is", "it") if len(users) == 1 else ("are", "them")
    remedy = f"export {them}, or leave out what needs {them}, or use --no-check if the workers have {them}"
    return CommandError(f"{said} {verb} not set", "keys", remedy)


def _warnings(plan: Plan, problems: Mapping[str, str]) -> Iterator[str]:
    """One channel that can write is enough; of engines and sites every one is used."""
    for stage, waiting in _WAITING.items():
        names = [route.name for route in plan.routes.get(stage, ())]
        out = [name for name in names if name in problems]
        if not out or (stage is Stage.GENERATE and len(out) < len(names)):
            continue
        yield f"warning: {waiting} has to wait"
        for problem in dict.fromkeys(problems[name] for name in out):
            yield f"  {', '.join(name for name in out if problems[name] == problem)}: {problem}"

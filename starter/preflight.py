"""Before a submission is accepted: the keys of everything it would use are there and are taken."""

import asyncio
from collections.abc import Mapping

from citeloop.channels.catalog import missing_keys
from citeloop.channels.errors import Fault
from citeloop.channels.outside import Outside
from citeloop.models.channel import Catalog
from citeloop.models.plan import Plan, Stage
from starter.errors import CommandError


class Preflight:
    """environ: where the keys are looked for; it must be the one that `outside` reads."""

    def __init__(self, outside: Outside, catalog: Catalog, environ: Mapping[str, str]) -> None:
        self._outside = outside
        self._catalog = catalog
        self._environ = environ

    async def check(self, plan: Plan) -> None:
        """CommandError that names channel, variable and remedy. Any other trouble is left to the retries."""
        names = {route.name for routes in plan.routes.values() for route in routes}
        for lacking in missing_keys(self._catalog, self._environ, sorted(names)):
            remedy = f"export {lacking.variable}, or leave {lacking.name} out"
            raise CommandError(f"{lacking.variable} is not set", lacking.name, remedy)
        sites = {route.name for route in plan.routes.get(Stage.PUBLISH, ())}
        channels = sorted(names - sites)
        probes = await asyncio.gather(*(self._outside.probe(name) for name in channels))
        for name, probe in zip(channels, probes, strict=True):
            if probe.fault is Fault.UNAUTHORIZED:
                raise CommandError(probe.problem, f"channel {name}", "or leave it out, or use --no-check")

"""From a request to the frozen manifest and one plan an article."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm

from citeloop.models.brand import Brand, Entity
from citeloop.models.channel import Catalog, ChannelSpec, Role, SiteSpec
from citeloop.models.ids import article_id, digest_id
from citeloop.models.measure import Manifest, Prompt
from citeloop.models.plan import Plan, Route, Stage
from citeloop.models.record import Record
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.rules.domains import host_of
from citeloop.rules.matching import MATCHER_VERSION
from citeloop.rules.parsing import MAX_KEYWORD, same_keyword
from citeloop.rules.prompting import control_prompt, question_for
from citeloop.rules.requests import RequestError, close_to

MAX_FIELD = 10_000
"""Characters of any single text of a request or a brand."""
MAX_BRAND = 1_000_000

_NEEDS = {
    Stage.REWRITE: (Stage.GENERATE,),
    Stage.ILLUSTRATE: (Stage.GENERATE,),
    Stage.REVIEW: (Stage.GENERATE,),
    Stage.PUBLISH: (Stage.GENERATE, Stage.REVIEW),
    Stage.MONITOR: (Stage.PUBLISH,),
}


def build(
    request: CampaignRequest,
    catalog: Catalog,
    brand: Brand,
    *,
    tenant_id: str,
    brand_id: str,
    campaign_id: str | None,
    weight: float = 1.0,
) -> tuple[Manifest, tuple[Plan, ...]]:
    """One plan a keyword, in the order of the request. Raises RequestError; nothing is half-done."""
    _check_texts(request, brand)
    _check_keywords(request.keywords)
    stages = _checked_stages(request.stages)
    writers = _channels(catalog, request.writers, Role.WRITE, "writers")
    illustrators = _channels(catalog, request.illustrators, Role.ILLUSTRATE, "illustrators")
    engines = _channels(catalog, request.engines, Role.ANSWER, "engines") if Stage.MONITOR in stages else ()
    sites = _sites(catalog, request.sites) if Stage.PUBLISH in stages else ()
    _check_ways(stages, writers, engines, sites)
    needed = {*stages, Stage.REWRITE} if Stage.REVIEW in stages else set(stages)  # what is sent back is rewritten
    manifest = _manifest(request, brand, engines, sites, (tenant_id, brand_id))
    writer_orders = _orders(request.keywords, writers, manifest.id, catalog, Role.WRITE)
    picture_orders = _orders(request.keywords, illustrators, manifest.id, catalog, Role.ILLUSTRATE)
    plans = []
    ordered = zip(request.keywords, writer_orders, picture_orders, strict=True)
    for place, (line, writing, drawing) in enumerate(ordered):
        routes = {
            Stage.GENERATE: tuple(_route(spec, Stage.GENERATE) for spec in writing),
            Stage.REWRITE: tuple(_route(spec, Stage.REWRITE) for spec in writing),
            Stage.ILLUSTRATE: tuple(_route(spec, Stage.ILLUSTRATE) for spec in drawing),
            Stage.PUBLISH: tuple(Route(name=s.name, queue=s.queue, policy=s.policy) for s in sites),
            Stage.MONITOR: tuple(_route(spec, Stage.MONITOR) for spec in engines),
        }
        plans.append(
            Plan(
                tenant_id=tenant_id,
                article_id=article_id(
                    tenant_id, campaign_id or brand.entity.name, line.keyword, line.locale, line.kind
                ),
                campaign_id=campaign_id,
                brand_id=brand_id,
                manifest_id=manifest.id,
                keyword=line.keyword,
                locale=line.locale,
                kind=line.kind,
                stages=stages,
                routes={stage: ways for stage, ways in routes.items() if stage in needed},
                methods=request.methods,
                review=request.review,
                monitor=request.monitor,
                priority=line.priority,
                weight=weight,
                publish_at=request.publishes(place),
            )
        )
    return manifest, tuple(plans)


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Record):
        for name in type(value).model_fields:
            yield from _texts(getattr(value, name), f"{path}.{name}" if path else name)
    elif isinstance(value, tuple | list):
        for place, item in enumerate(value):
            yield from _texts(item, f"{path}[{place}]")


@lru_cache(maxsize=256)
def check_brand(brand: Brand) -> None:
    """RequestError for texts that are too long, alone or together, and for a brand without facts."""
    total = 0
    for path, text in _texts(brand, "brand"):
        total += len(text)
        _check_length(path, text)
    if total > MAX_BRAND:
        raise RequestError("brand", f"its texts have {total} characters", f"{MAX_BRAND} are allowed: split it")
    if not brand.facts:
        raise RequestError("brand.facts", "the brand has no facts", "add at least one fact with its public source_url")


def _check_texts(request: CampaignRequest, brand: Brand) -> None:
    for path, text in _texts(request, ""):
        _check_length(path, text)
    check_brand(brand)


def _check_length(path: str, text: str) -> None:
    if len(text) > MAX_FIELD:
        raise RequestError(path, f"has {len(text)} characters", f"{MAX_FIELD} are allowed: shorten it")


def _check_keywords(lines: Sequence[KeywordLine]) -> None:
    seen: dict[tuple[str, str, str], int] = {}
    for place, line in enumerate(lines):
        field = f"keywords[{place}].keyword"
        if not line.keyword.strip():
            raise RequestError(field, "is empty", "write the words people ask the engines")
        if len(line.keyword) > MAX_KEYWORD:
            raise RequestError(field, f"has {len(line.keyword)} characters", f"{MAX_KEYWORD} are allowed")
        key = (same_keyword(line.keyword), line.locale.lower(), line.kind)
        if key in seen:
            problem = f"{line.keyword!r} repeats keywords[{seen[key]}]"
            raise RequestError(field, problem, "remove one of the two, or give it another kind or locale")
        seen[key] = place
    if not lines:
        raise RequestError("keywords", "there are none", "give at least one keyword")


def _checked_stages(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Each stage once, in order, after what it needs. Rewriting and the picture may be left out."""
    if not stages or stages[0] != Stage.GENERATE:
        raise RequestError("stages", "do not begin with generate", "begin with generate: there is no text before it")
    order = [stage for stage in Stage if stage in stages]
    if list(stages) != order:
        raise RequestError("stages", f"are {', '.join(stages)}", f"write each once and in order: {', '.join(order)}")
    for stage in stages:
        for needed in _NEEDS.get(stage, ()):
            if needed not in stages:
                raise RequestError("stages", f"{stage} without {needed}", f"add {needed} or leave {stage} out")
    return stages


def _channels(catalog: Catalog, names: Sequence[str], role: Role, field: str) -> tuple[ChannelSpec, ...]:
    able = catalog.with_role(role)
    chosen = []
    for name in dict.fromkeys(names):
        spec = catalog.channel(name)
        if spec is None:
            remedy = close_to(name, (channel.name for channel in able), f"channels with role {role}")
            raise RequestError(field, f"there is no channel {name!r}", remedy)
        if role not in spec.roles:
            roles = ", ".join(sorted(spec.roles))
            problem = f"channel {name!r} has the role {roles} but not {role}"
            remedy = f"add {role} to its roles in channels.toml or choose another channel"
            raise RequestError(field, problem, remedy)
        chosen.append(spec)
    return tuple(chosen) or able


def _sites(catalog: Catalog, names: Sequence[str]) -> tuple[SiteSpec, ...]:
    chosen = []
    for name in dict.fromkeys(names):
        spec = catalog.site(name)
        if spec is None:
            known = (site.name for site in catalog.sites)
            raise RequestError("sites", f"there is no site {name!r}", close_to(name, known, "sites"))
        chosen.append(spec)
    return tuple(chosen) or catalog.sites


def _check_ways(
    stages: Sequence[Stage],
    writers: Sequence[ChannelSpec],
    engines: Sequence[ChannelSpec],
    sites: Sequence[SiteSpec],
) -> None:
    if not writers:
        raise RequestError("writers", "no writer is configured", "add a channel with role write to channels.toml")
    if Stage.PUBLISH in stages and not sites:
        raise RequestError("sites", "no site is configured", "add a site to channels.toml or end stages with review")
    if Stage.MONITOR in stages and not engines:
        raise RequestError(
            "engines", "no answer engine is configured", "add a channel with role answer, or leave monitor out"
        )


def _manifest(
    request: CampaignRequest,
    brand: Brand,
    engines: Sequence[ChannelSpec],
    sites: Sequence[SiteSpec],
    owner: tuple[str, str],
) -> Manifest:
    """One prompt a keyword and the brand's control prompts; the id is the digest of all of it.

    The brand's own sites count among its domains: an answer that cites one of them cites the brand.
    """
    hosts = (host_of(site.base_url) for site in sites if site.owned)
    domains = dict.fromkeys([*brand.entity.domains, *(host for host in hosts if host is not None)])
    asked = [question_for(line.keyword, line.locale, brand.entity) for line in request.keywords]
    controls = [_control(text, brand.entity) for text in brand.control_prompts]
    prompts: dict[str, Prompt] = {}
    for prompt in (*asked, *controls):
        prompts.setdefault(prompt.id, prompt)
    manifest = Manifest(
        id="",
        brand=brand.entity.model_copy(update={"domains": tuple(domains)}),
        rivals=brand.rivals,
        prompts=tuple(prompts.values()),
        engines=tuple(engine.name for engine in engines),
        replicates=request.monitor.replicates,
        matcher_version=MATCHER_VERSION,
    )
    return manifest.model_copy(update={"id": digest_id("manifest", *owner, manifest.model_dump_json())})


@lru_cache(maxsize=1024)
def _control(text: str, brand: Entity) -> Prompt:
    """Kept: every article that is submitted alone asks them anew."""
    return control_prompt(text, brand)


def _route(spec: ChannelSpec, stage: Stage) -> Route:
    return Route(name=spec.name, queue=spec.queue, policy=spec.policy_for(stage))


def _weights(specs: Sequence[ChannelSpec]) -> list[int]:
    """In the proportion of the rates; an unlimited channel weighs as much as the fastest one, a paused one nothing."""
    limited = [spec.rate for spec in specs if spec.rate]
    fastest = max(limited, default=Fraction(1))
    shares = [fastest if spec.rate is None else spec.rate for spec in specs]
    whole = lcm(*(share.denominator for share in shares))
    return [int(share * whole) for share in shares]


def _orders(
    lines: Sequence[KeywordLine], specs: Sequence[ChannelSpec], seed: str, catalog: Catalog, role: Role
) -> list[tuple[ChannelSpec, ...]]:
    """For each line its channels in order of preference: smooth weighted round robin in order of admission.

    The first choices come in proportion to the rates and well mixed; the others follow by what they are owed, then
    the fallbacks that nobody chose. `seed` shifts the start, so that single articles do not all go to one channel.
    """
    weights, owed = _weights(specs), [0] * len(specs)
    found: list[tuple[ChannelSpec, ...]] = [()] * len(lines)

    def turn() -> tuple[ChannelSpec, ...]:
        for place, share in enumerate(weights):
            owed[place] += share
        order = sorted(range(len(specs)), key=lambda i: (weights[i] == 0, -owed[i], specs[i].name))
        owed[order[0]] -= sum(weights)
        return _with_fallbacks([specs[place] for place in order], catalog, role)

    if specs:
        for _ in range(sum(seed.encode()) % 97):
            turn()
        for place in sorted(range(len(lines)), key=lambda i: (lines[i].priority, i)):
            found[place] = turn()
    return found


def _with_fallbacks(order: Sequence[ChannelSpec], catalog: Catalog, role: Role) -> tuple[ChannelSpec, ...]:
    found = {spec.name: spec for spec in order}
    for spec in order:
        following = spec.fallback and catalog.channel(spec.fallback)
        while following and following.name not in found and role in following.roles:
            found[following.name] = following
            following = following.fallback and catalog.channel(following.fallback)
    return tuple(found.values())

"""Requests become plans, or one line that says what to change."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from pydantic import ValidationError

from citeloop.models.brand import Brand, Entity, Fact
from citeloop.models.channel import Catalog, ChannelSpec, Role, SiteKind, SiteSpec
from citeloop.models.measure import Manifest
from citeloop.models.plan import CallPolicy, Kind, Plan, Stage
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.rules.planning import build
from citeloop.rules.requests import RequestError, explained


def channel(name: str, *roles: Role, rate: int | None = 1) -> ChannelSpec:
    return ChannelSpec(
        name=name,
        roles=frozenset(roles),
        dialect="openai_chat",
        base_url="http://127.0.0.1:1",
        model="m",
        rate=None if rate is None else Fraction(rate),
        stage_policies={Stage.REWRITE: CallPolicy(max_faults=9)},
    )


CATALOG = Catalog(
    channels=(
        channel("deepseek", Role.WRITE, rate=4),
        channel("doubao", Role.WRITE, rate=3),
        channel("qwen", Role.WRITE, rate=3),
        channel("paint", Role.ILLUSTRATE),
        channel("asker", Role.ANSWER, Role.WRITE, rate=0),
    ),
    sites=(SiteSpec(name="blog", kind=SiteKind.WORDPRESS, base_url="http://127.0.0.1:2"),),
)
BRAND = Brand(
    entity=Entity(name="Acme"),
    homepage="https://acme.com",
    facts=(Fact(id="a", text="Acme runs.", source_url="https://acme.com/a"),),
    control_prompts=("What is a graph?",),
)


def made(
    *keywords: str,
    stages: tuple[Stage, ...] = tuple(Stage),
    catalog: Catalog = CATALOG,
    brand: Brand = BRAND,
    writers: tuple[str, ...] = (),
    sites: tuple[str, ...] = (),
    engines: tuple[str, ...] = (),
    lines: tuple[KeywordLine, ...] = (),
) -> tuple[Manifest, tuple[Plan, ...]]:
    request = CampaignRequest(
        name="c",
        keywords=lines or tuple(KeywordLine(keyword=k) for k in keywords),
        stages=stages,
        writers=writers,
        sites=sites,
        engines=engines,
    )
    return build(request, catalog, brand, tenant_id="T", brand_id="B", campaign_id="C", weight=2)


def refusal(*keywords: str, **changes: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        made(*(keywords or ("k",)), **changes)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_request_becomes_one_plan_a_keyword_under_one_manifest() -> None:
    manifest, plans = made("one", "two", writers=("deepseek", "doubao", "qwen"))
    assert [plan.keyword for plan in plans] == ["one", "two"]
    assert {plan.manifest_id for plan in plans} == {manifest.id}
    assert [(p.keyword, p.branded) for p in manifest.prompts] == [("one", False), ("two", False), (None, False)]
    assert manifest.engines == ("asker",)
    first = plans[0]
    assert first.weight == 2
    assert first.routes[Stage.PUBLISH][0].queue == "publisher.wordpress"
    assert first.routes[Stage.MONITOR][0].queue == "channel.asker"
    assert [r.name for r in first.routes[Stage.GENERATE]] == [r.name for r in first.routes[Stage.REWRITE]]
    assert first.routes[Stage.REWRITE][0].policy.max_faults == 9
    assert first.routes[Stage.GENERATE][0].policy.max_faults == 4
    assert Stage.REVIEW not in first.routes


def test_the_same_request_makes_the_same_plans_and_another_another_manifest() -> None:
    assert made("one", "two") == made("one", "two")
    assert made("one")[0].id != made("two")[0].id


def test_first_choices_follow_the_rates_and_the_others_stand_by() -> None:
    _, plans = made(*(f"k{i}" for i in range(100)))
    orders = [[route.name for route in plan.routes[Stage.GENERATE]] for plan in plans]
    assert Counter(order[0] for order in orders) == {"deepseek": 40, "doubao": 30, "qwen": 30}
    assert all(set(order) == {"deepseek", "doubao", "qwen", "asker"} for order in orders)
    assert {order[-1] for order in orders} == {"asker"}
    firsts = [order[0] for order in orders]
    assert all(len(set(firsts[i : i + 4])) == 3 for i in range(96))


def test_fallbacks_follow_the_channels_that_were_chosen() -> None:
    first, second, third, *others = CATALOG.channels
    chained = (
        first.model_copy(update={"fallback": "doubao"}),
        second.model_copy(update={"fallback": "qwen"}),
        third.model_copy(update={"fallback": "paint"}),
    )
    _, (plan,) = made(
        "graphs", catalog=CATALOG.model_copy(update={"channels": (*chained, *others)}), writers=("deepseek",)
    )
    assert [route.name for route in plan.routes[Stage.GENERATE]] == ["deepseek", "doubao", "qwen"]


def test_single_articles_do_not_all_go_to_one_writer() -> None:
    firsts = {made(f"keyword {i}")[1][0].routes[Stage.GENERATE][0].name for i in range(30)}
    assert firsts == {"deepseek", "doubao", "qwen"}


def test_one_keyword_in_two_kinds_is_asked_once() -> None:
    lines = (KeywordLine(keyword="k"), KeywordLine(keyword="k", kind=Kind.FAQ))
    manifest, plans = made(lines=lines)
    assert len({plan.article_id for plan in plans}) == 2
    assert sum(prompt.keyword == "k" for prompt in manifest.prompts) == 1


@pytest.mark.parametrize(
    "stages",
    [tuple(Stage)[:n] for n in range(1, 7)]
    + [(Stage.GENERATE, Stage.REVIEW, Stage.PUBLISH), (Stage.GENERATE, Stage.ILLUSTRATE)],
)
def test_every_prefix_of_the_stages_is_allowed(stages: tuple[Stage, ...]) -> None:
    _, plans = made("k", stages=stages)
    assert plans[0].stages == stages
    sent_back = {Stage.REWRITE} if Stage.REVIEW in stages else set()
    assert set(plans[0].routes) <= set(stages) | sent_back


def test_a_plan_with_a_review_and_no_rewrite_can_rewrite_what_is_sent_back() -> None:
    _, (plan,) = made("k", stages=(Stage.GENERATE, Stage.REVIEW))
    assert [route.name for route in plan.routes[Stage.REWRITE]] == [r.name for r in plan.routes[Stage.GENERATE]]


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        ((Stage.REWRITE,), "begin with generate"),
        ((), "begin with generate"),
        ((Stage.GENERATE, Stage.MONITOR), "monitor without publish"),
        ((Stage.GENERATE, Stage.PUBLISH), "publish without review"),
        ((Stage.GENERATE, Stage.REVIEW, Stage.REWRITE), "write each once and in order: generate, rewrite, review"),
        ((Stage.GENERATE, Stage.GENERATE), "write each once"),
    ],
)
def test_stages_out_of_order_or_without_what_they_need_are_refused(stages: tuple[Stage, ...], problem: str) -> None:
    error = refusal(stages=stages)
    assert error.field == "stages"
    assert problem in str(error)


def test_a_keyword_repeated_in_another_spelling_is_refused_by_its_place() -> None:
    error = refusal("Vector  DB", "x", "ｖｅｃｔｏｒ db")
    assert error.field == "keywords[2].keyword"
    assert "repeats keywords[0]" in str(error)


def test_unknown_names_are_refused_with_those_that_are_close() -> None:
    assert "did you mean deepseek?" in str(refusal(writers=("depseek",)))
    assert "did you mean blog?" in str(refusal(sites=("blgo",)))
    assert "known sites: blog" in str(refusal(sites=("zzz",)))
    error = refusal(writers=("paint",))
    assert "has the role illustrate but not write" in str(error)


def test_missing_writers_sites_and_engines_are_refused_only_where_needed() -> None:
    bare = Catalog(channels=(channel("w", Role.WRITE),))
    assert made("k", catalog=bare, stages=(Stage.GENERATE,))[1]
    assert refusal(catalog=bare).field == "sites"
    assert refusal(catalog=Catalog(), stages=(Stage.GENERATE,)).field == "writers"
    sited = bare.model_copy(update={"sites": CATALOG.sites})
    assert refusal(catalog=sited).field == "engines"


def test_a_brand_without_facts_and_a_huge_text_are_refused() -> None:
    assert refusal(brand=BRAND.model_copy(update={"facts": ()})).field == "brand.facts"
    huge = BRAND.model_copy(update={"voice": "x" * 2_000_000})
    assert (refusal(brand=huge).field, "2000000 characters" in str(refusal(brand=huge))) == ("brand.voice", True)
    long = KeywordLine.model_construct(keyword="x" * 201, locale="en", kind=Kind.ARTICLE, priority=3)
    request = CampaignRequest.model_construct(
        **(dict(CampaignRequest(name="c", keywords=(KeywordLine(keyword="k"),))) | {"keywords": (long,)})
    )
    with pytest.raises(RequestError, match="200 are allowed"):
        build(request, CATALOG, BRAND, tenant_id="T", brand_id="B", campaign_id=None)


def test_a_record_that_cannot_be_read_is_explained_in_one_line() -> None:
    def why(value: object) -> str:
        with pytest.raises(ValidationError) as caught:
            CampaignRequest.model_validate(value)
        return str(explained(caught.value))

    assert why({"name": "c", "keywords": [{"keyword": "k", "kind": "video"}]}).startswith(
        "keywords[0].kind: video is not supported"
    )
    assert why({"keywords": [{"keyword": "k"}]}) == "name: is missing; add it"
    assert "is no known field" in why({"name": "c", "keywords": [{"keyword": "k"}], "writer": []})
    assert "is empty" in why({"name": "c", "keywords": [{"keyword": "  "}]})


NOON = datetime(2026, 12, 24, 12, tzinfo=UTC)


def test_articles_drip_out_from_the_time_that_was_asked_for() -> None:
    request = CampaignRequest(
        name="drip",
        keywords=tuple(KeywordLine(keyword=f"k{n}") for n in range(3)),
        publish_at=NOON,
        publish_every=timedelta(hours=2),
    )
    _, plans = build(request, CATALOG, BRAND, tenant_id="t", brand_id="b", campaign_id="c")
    assert [plan.publish_at for plan in plans] == [NOON + n * timedelta(hours=2) for n in range(3)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"publish_every": timedelta(hours=1)}, "publish_every without publish_at; say from when"),
        ({"publish_at": NOON.replace(year=2150)}, "publishes after the year 2099; choose an earlier publish_at"),
        (
            {"publish_at": NOON.replace(year=9999), "publish_every": timedelta(days=365)},
            "publishes after the year 2099",
        ),
        ({"publish_at": datetime(2026, 12, 24)}, "publish_at: Input should have timezone info"),  # noqa: DTZ001
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_its_remedy(given: dict[str, object], words: str) -> None:
    fields: dict[str, object] = {"name": "drip", "keywords": [{"keyword": "k"}], **given}
    with pytest.raises(ValidationError) as refused:
        CampaignRequest.model_validate(fields)
    assert words in str(explained(refused.value))

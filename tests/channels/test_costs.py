"""What a call cost: cached tokens at their own price, searches, a price of the day, and the operator's own."""

from datetime import date
from pathlib import Path

import httpx
import pytest

from citeloop.channels.costs import cost_of
from citeloop.channels.prices import FILE, read_prices, tariffs_for
from citeloop.channels.providers import NAMES
from citeloop.channels.toml_spots import CatalogError
from citeloop.channels.writers.openai_chat import OpenAIChatWriter
from citeloop.models.channel import Price, Tariff
from citeloop.models.money import Money
from citeloop.models.usage import Usage
from tests.channels.provider import Provider
from tests.channels.settings import KEY, MESSAGES, call, chat_body, spec

DAY = date(2026, 11, 29)
FULL = Price(input=2_000_000, cached=40_000, cache_write=2_500_000, output=8_000_000, search=5_000, call=100)


def cost(price: Price | None, usage: Usage, *, tariffs: tuple[Tariff, ...] = (), day: date = DAY) -> Money:
    return cost_of(spec("https://api.example", price=price, tariffs=tariffs), usage, day)


def test_each_kind_of_token_has_its_price() -> None:
    usage = Usage(input_tokens=1000, cached_tokens=600, cache_written_tokens=100, output_tokens=50, searches=2)
    assert cost(FULL, usage).micros == 300 * 2 + 24 + 250 + 400 + 2 * 5_000 + 100


def test_without_a_price_for_the_cache_its_tokens_cost_as_all_others() -> None:
    usage = Usage(input_tokens=1000, cached_tokens=600, cache_written_tokens=100)
    assert cost(Price(input=2_000_000), usage).micros == 2000


def test_counts_that_contradict_each_other_never_make_a_negative_cost() -> None:
    usage = Usage(input_tokens=10, cached_tokens=600, cache_written_tokens=100)
    assert cost(FULL, usage).micros == 100


def test_reasoning_is_part_of_the_output_and_not_paid_twice() -> None:
    assert cost(Price(output=8_000_000), Usage(output_tokens=100, reasoning_tokens=90)).micros == 800


def test_half_a_micro_is_rounded_up_and_exactly() -> None:
    assert cost(Price(input=500_000), Usage(input_tokens=1)).micros == 1
    assert cost(Price(input=499_999), Usage(input_tokens=1)).micros == 0


def test_the_price_in_force_on_the_day_counts() -> None:
    tariffs = tuple(
        Tariff(effective=effective, price=Price(input=price, currency="USD"), source="s")
        for effective, price in ((date(2026, 9, 7), 750_000), (date(2027, 1, 1), 1_500_000))
    )
    million = Usage(input_tokens=1_000_000)
    assert cost(None, million, tariffs=tariffs, day=date(2026, 12, 31)).micros == 750_000
    assert cost(None, million, tariffs=tariffs, day=date(2027, 1, 1)).micros == 1_500_000
    assert cost(None, million, tariffs=tariffs, day=date(2026, 1, 1)).micros == 0


def test_a_stated_cost_comes_before_the_price_file_and_after_the_operators_price() -> None:
    stated = Usage(input_tokens=1_000_000, stated=Money(micros=5, currency="USD"))
    tariffs = (Tariff(effective=date(2026, 1, 1), price=Price(input=7), source="s"),)
    assert cost(None, stated, tariffs=tariffs) == Money(micros=5, currency="USD")
    assert cost(Price(input=9), stated, tariffs=tariffs).micros == 9


def test_turns_add_up() -> None:
    one = Usage(input_tokens=1, cached_tokens=1, output_tokens=2, searches=1, stated=Money(micros=3, currency="USD"))
    both = one.plus(one)
    assert (both.input_tokens, both.cached_tokens, both.output_tokens, both.searches) == (2, 2, 4, 2)
    assert both.stated == Money(micros=6, currency="USD")
    assert one.plus(Usage(stated=Money(micros=1, currency="CNY"))).stated is None


DEEPSEEK = {"prompt_tokens": 1000, "prompt_cache_hit_tokens": 600, "completion_tokens": 50}
KIMI = {"prompt_tokens": 1000, "cached_tokens": 600, "completion_tokens": 50}
OPENAI = {
    "prompt_tokens": 1000,
    "prompt_tokens_details": {"cached_tokens": 600},
    "completion_tokens": 50,
    "completion_tokens_details": {"reasoning_tokens": 20},
}


@pytest.mark.parametrize("usage", [DEEPSEEK, KIMI, OPENAI], ids=["deepseek", "kimi", "openai"])
async def test_a_chats_cached_tokens_are_found_where_its_vendor_counts_them(usage: dict[str, object]) -> None:
    channel = spec("https://api.example", price=Price(input=2_000_000, cached=40_000, output=8_000_000))
    async with Provider(httpx.Response(200, content=chat_body(evidence={"usage": usage}))) as provider:
        done = await OpenAIChatWriter(channel, KEY, provider.wire(channel)).write(MESSAGES, call())
    assert (done.usage.input_tokens, done.usage.cached_tokens) == (1000, 600)
    assert done.cost.micros == 400 * 2 + 24 + 400


def test_the_price_file_names_known_providers_a_day_and_a_source() -> None:
    book = read_prices()
    assert set(book) <= set(NAMES)
    tariffs = [one for models in book.values() for days in models.values() for one in days]
    assert tariffs
    assert all(one.source and one.price.currency in {"CNY", "USD"} for one in tariffs)
    assert all(one.price.cached is None or one.price.cached <= one.price.input for one in tariffs)


def test_a_models_exact_name_comes_before_a_pattern(tmp_path: Path) -> None:
    lines = [
        f'[openai."{model}".2026-01-01]\ncurrency = "USD"\nsource = "s"\ninput = {price}\n'
        for model, price in (("gpt-5*", 1), ("gpt-5.4*", 2), ("gpt-5.4-mini", 3))
    ]
    path = tmp_path / "prices.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    book = read_prices(path)
    found = [tariffs_for(book, "openai", name) for name in ("gpt-5.4-mini", "gpt-5.4", "gpt-5", "o9")]
    assert [one[0].price.input // 1_000_000 if one else None for one in found] == [3, 2, 1, None]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('[openai.m.soon]\ncurrency = "USD"\nsource = "s"', "prices.toml:1: openai.m.soon: must end with the day"),
        ('[openai.m.2026-01-01]\ncurrency = "USD"', "source is missing"),
        ('[openai.m.2026-01-01]\ncurrency = "USD"\nsource = "s"\noutputs = 3', "prices.toml:4"),
    ],
)
def test_a_mistake_in_the_price_file_is_named_with_its_line(tmp_path: Path, lines: str, words: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(CatalogError, match=words):
        read_prices(path)
    assert FILE.name == "prices.toml"

"""channels.toml is read exactly, and each mistake in it is named with file, line, field and remedy."""

from datetime import time, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from citeloop.channels.catalog import CatalogError, load, missing_keys
from citeloop.models.channel import Catalog, DailyReset, Price, Role, SiteKind
from citeloop.models.plan import Stage

WHOLE = """\
allow_private_addresses = true

[channels.deepseek]
roles = ["write", "answer"]           # a comment
dialect = "openai_chat"
base_url = "http://127.0.0.1:{env:SANDBOX_PORT}/v1/"
model = "deepseek-flash"
key_env = "DEEPSEEK_API_KEY"
rate = "12/min"
burst = 2
concurrency = 6
stream = false
price = { input = 2.0, output = 0.000001, call = 1, currency = "USD" }
extra = { thinking = { type = "disabled" }, temperature = 0.7, tools = [{ type = "web_search" }] }
timeouts = { connect = "300ms", total = "2m" }
retry = { max_faults = 2, backoff = "1.5s", backoff_max = "1m" }

[channels.deepseek.stages.rewrite]
timeouts = { total = "400s" }

[channels.pictures]
roles = ["illustrate"]
dialect = "openai_images"
base_url = "https://images.example/v1"
model = "gpt-image-2"

[sites.blog]
kind = "wordpress"
base_url = "https://blog.example"
user_env = "BLOG_USER"
secret_env = "BLOG_PASSWORD"
rate = "1/s"
concurrency = 3
max_server_time = "300s"
callback_deadline = "10m"
timeouts = { total = "90s" }
"""
ENVIRON = {"SANDBOX_PORT": "8123", "BLOG_USER": "me"}
CHANNEL = """\
[channels.deepseek]
roles = ["write"]
dialect = "openai_chat"
base_url = "https://api.deepseek.com/v1"
model = "deepseek-flash"
"""

OTHER = CHANNEL.replace("deepseek]", "qwen]")


def loaded(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "channels.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, ENVIRON)


def test_a_whole_file_becomes_the_catalogue(tmp_path: Path) -> None:
    catalog = loaded(tmp_path, WHOLE)
    channel = catalog.channel("deepseek")
    assert channel is not None
    assert channel.roles == {Role.WRITE, Role.ANSWER}
    assert channel.base_url == "http://127.0.0.1:8123/v1"
    assert channel.rate == Fraction(1, 5)
    assert (channel.burst, channel.concurrency, channel.stream) == (2, 6, False)
    assert channel.price == Price(input=2_000_000, output=1, call=1_000_000, currency="USD")
    assert channel.extra == {
        "thinking": {"type": "disabled"},
        "temperature": 0.7,
        "tools": [{"type": "web_search"}],
    }
    assert channel.policy.connect == timedelta(milliseconds=300)
    assert channel.policy.first_byte == timedelta(seconds=60)
    assert (channel.policy.max_faults, channel.policy.backoff) == (2, timedelta(seconds=1.5))
    rewrite = channel.policy_for(Stage.REWRITE)
    assert rewrite.total == timedelta(seconds=400)
    assert rewrite.connect == timedelta(milliseconds=300)
    assert channel.policy_for(Stage.GENERATE).total == timedelta(minutes=2)
    assert catalog.allow_private_addresses


def test_a_site_keeps_its_own_limits(tmp_path: Path) -> None:
    site = loaded(tmp_path, WHOLE).site("blog")
    assert site is not None
    assert (site.kind, site.concurrency, site.rate) == (SiteKind.WORDPRESS, 3, Fraction(1))
    assert site.callback_deadline == timedelta(minutes=10)
    assert site.policy.total == timedelta(seconds=90)


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    catalog = loaded(tmp_path, CHANNEL)
    channel = catalog.channel("deepseek")
    assert channel is not None
    assert channel.rate is None
    assert channel.stream
    assert not catalog.allow_private_addresses


def test_rate_zero_means_paused(tmp_path: Path) -> None:
    channel = loaded(tmp_path, CHANNEL + "rate = 0\n").channel("deepseek")
    assert channel is not None
    assert channel.rate == 0


def test_a_channel_keeps_all_its_limits(tmp_path: Path) -> None:
    more = (
        "tokens_per_minute = 60000\ncalls_per_day = 1000\ntokens_per_day = 5000000\n"
        'quota_resets = "08:30 Asia/Shanghai"\nslow_factor = 2.5\nfallback = "qwen"\n'
    )
    channel = loaded(tmp_path, CHANNEL + more + OTHER).channel("deepseek")
    assert channel is not None
    assert (channel.tokens_per_minute, channel.calls_per_day, channel.tokens_per_day) == (60_000, 1000, 5_000_000)
    assert channel.quota_resets == DailyReset(at=time(8, 30), zone="Asia/Shanghai")
    assert (channel.slow_factor, channel.fallback, channel.has_allowance) == (2.5, "qwen", True)


def test_missing_keys_are_listed_by_name_and_variable(tmp_path: Path) -> None:
    missing = missing_keys(loaded(tmp_path, WHOLE), ENVIRON, ["deepseek", "pictures", "blog", "nobody"])
    assert [(one.name, one.variable) for one in missing] == [
        ("deepseek", "DEEPSEEK_API_KEY"),
        ("blog", "BLOG_PASSWORD"),
    ]
    assert missing[0].message == (
        f"{tmp_path}/channels.toml:8: channels.deepseek.key_env: DEEPSEEK_API_KEY is not set; export it, "
        "or remove deepseek from channels.toml"
    )


MISTAKES = {
    "an unknown key": (CHANNEL + 'raet = "2/s"\n', ":6: channels.deepseek.raet: unknown key; did you mean rate?"),
    "an unknown table": ("[chanels.x]\n", ":1: chanels: unknown key; did you mean channels?"),
    "a negative rate": (CHANNEL + 'rate = "-1/s"\n', ":6: channels.deepseek.rate: '-1/s' is below zero"),
    "a rate without sense": (CHANNEL + 'rate = "fast"\n', ":6: channels.deepseek.rate: 'fast' is no rate"),
    "a bad duration": (
        CHANNEL + 'timeouts = { total = "5 minutes" }\n',
        ":6: channels.deepseek.timeouts.total: '5 minutes' is no duration; write \"5s\"",
    ),
    "a duration of zero": (CHANNEL + 'timeouts = { total = "0s" }\n', "timeouts.total: '0s' is no duration"),
    "a misspelt timeout": (
        CHANNEL + '[channels.deepseek.timeouts]\nfirst_bite = "5s"\n',
        ":7: channels.deepseek.timeouts.first_bite: unknown key; did you mean first_byte?",
    ),
    "a duplicate channel": (CHANNEL + CHANNEL, ":6: channels.deepseek: declared twice"),
    "a duplicate key": (CHANNEL + 'model = "other"\n', ":6: model: declared twice"),
    "a bad role": (CHANNEL.replace('"write"', '"wrte"'), ":2: channels.deepseek.roles: 'wrte' is not known"),
    "an unknown dialect": (CHANNEL.replace("openai_chat", "opnai_chat"), ":3: channels.deepseek.dialect"),
    "a dialect that cannot do the role": (
        CHANNEL.replace("openai_chat", "openai_images"),
        ":3: channels.deepseek.dialect: 'openai_images' cannot write; use anthropic_messages or dashscope or",
    ),
    "no model": (CHANNEL.replace('model = "deepseek-flash"\n', ""), ":1: channels.deepseek: model is missing"),
    "an unset variable in the address": (
        CHANNEL.replace("api.deepseek.com", "{env:NOWHERE}"),
        ":4: channels.deepseek.base_url: the variable NOWHERE is not set; export it",
    ),
    "an address that is none": (CHANNEL.replace("https://", "ftp://"), "base_url: is no http(s) address"),
    "a password in the address": (CHANNEL.replace("https://", "https://me:pw@"), "base_url: must hold neither"),
    "a key in place of its variable": (CHANNEL + 'key_env = "sk-123"\n', "key_env: must be the name"),
    "a site of unknown kind": (
        '[sites.blog]\nkind = "wordpres"\nbase_url = "https://b.example"\nsecret_env = "S"\n',
        ":2: sites.blog.kind: 'wordpres' is not known; did you mean wordpress?",
    ),
    "a WordPress site without a user": (
        '[sites.blog]\nkind = "wordpress"\nbase_url = "https://b.example"\nsecret_env = "S"\n',
        ":1: sites.blog: user_env is missing",
    ),
    "malformed TOML": (CHANNEL + "rate = 2/s\n", ":6: "),
    "an unclosed text": (CHANNEL + 'rate = "2/s\n', ":6: "),
    "a name with a blank": (CHANNEL.replace("deepseek]", '"deep seek"]'), "channels.deep seek: is no name"),
    "a boolean in place of a number": (CHANNEL + "concurrency = true\n", "concurrency: must be a whole number"),
    "a negative price": (CHANNEL + "price = { input = -1 }\n", "price.input: must be an amount"),
    "no tokens at all": (CHANNEL + "tokens_per_minute = 0\n", ":6: channels.deepseek.tokens_per_minute: must be a"),
    "a reset without a quota": (CHANNEL + 'quota_resets = "00:00"\n', ":6: channels.deepseek.quota_resets: resets a"),
    "a reset at no time": (
        CHANNEL + 'calls_per_day = 5\nquota_resets = "midnight"\n',
        ":7: channels.deepseek.quota_resets: is no time of day; write",
    ),
    "a reset in no zone": (
        CHANNEL + 'calls_per_day = 5\nquota_resets = "00:00 Asia/Shangai"\n',
        ":7: channels.deepseek.quota_resets: 'Asia/Shangai' is no time zone; write one such as",
    ),
    "a factor by which everything is slow": (
        CHANNEL + "slow_factor = 1\n",
        ":6: channels.deepseek.slow_factor: must be a number from 1.1 to 1000",
    ),
    "a fallback that is not there": (
        CHANNEL + 'fallback = "qwn"\n' + OTHER,
        ":6: channels.deepseek.fallback: 'qwn' is not known; did you mean qwen?",
    ),
    "a fallback that cannot do the work": (
        CHANNEL + 'fallback = "qwen"\n' + OTHER.replace('"write"', '"answer"'),
        ":6: channels.deepseek.fallback: qwen has none of the roles of deepseek (write); name another channel",
    ),
    "fallbacks in a circle": (
        CHANNEL + 'fallback = "qwen"\n' + OTHER + 'fallback = "deepseek"\n',
        ":6: channels.deepseek.fallback: leads in a circle: deepseek → qwen → deepseek; remove one",
    ),
    "a fallback to itself": (CHANNEL + 'fallback = "deepseek"\n', ":6: channels.deepseek.fallback: leads in a circle"),
    "a date in extra": (CHANNEL + "extra = { since = 2026-01-01 }\n", "extra.since: holds a date"),
}


@pytest.mark.parametrize(("text", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_with_file_line_field_and_remedy(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CatalogError) as raised:
        loaded(tmp_path, text)
    message = str(raised.value)
    assert message.startswith(f"{tmp_path}/channels.toml")
    assert told in message
    assert "\n" not in message
    assert "sk-123" not in message


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"channels\.toml: not found; write it"):
        load(tmp_path / "channels.toml", {})


def test_a_file_that_is_not_utf8_says_so(tmp_path: Path) -> None:
    (tmp_path / "channels.toml").write_bytes(b"# \xff\n")
    with pytest.raises(CatalogError, match="not UTF-8"):
        load(tmp_path / "channels.toml", {})

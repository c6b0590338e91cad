"""The terms of a scenario: what the providers allow and how they fail, told to the sandbox and to the contender."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

WRITERS = ("deepseek", "doubao", "qwen")
ENGINES = ("perplexity", "hunyuan")
KEY = "sandbox-key"
TIMEOUT = 2.0
"""Seconds a client waits for a first byte; the sandbox's hangs are longer."""

_MODELS = {"perplexity": "sonar", "images": "sandbox-image"}
_PATHS = {"perplexity": "/perplexity"}
_PATIENCE = (
    f'timeouts = {{ connect = "2s", first_byte = "{TIMEOUT:g}s", between_chunks = "4s", total = "20s",'
    ' heartbeat = "5s" }\nretry = { max_faults = 6, backoff = "500ms", backoff_max = "3s" }\n'
)


@dataclass(frozen=True)
class Terms:
    rates: Mapping[str, float] = field(default_factory=dict)
    """Calls per second of each limited writer; empty: three writers without a limit."""
    faults: float = 0.05
    """Of the writers' calls: half of them HTTP 500, half a hang beyond the client's patience."""
    first_byte: tuple[float, float] = (0.2, 0.6)
    lost_replies: float = 0.0
    """Share of the posts that are placed and then not confirmed."""
    concurrency: int = 16
    refusable: bool = True
    """Whether the provider enforces the rates. False: only our channels know them."""
    channel_rates: Mapping[str, float] | None = None
    """What our channels believe, where that is not the provider's rate."""

    def burst(self, name: str) -> int:
        """Of the provider's bucket: one second's worth, as "n per second" is usually meant. Our channels' is 1."""
        return math.ceil(self.rates[name])

    @property
    def bursts(self) -> int:
        return sum(map(self.burst, self.rates))

    @property
    def summed(self) -> float:
        return sum(self.rates.values())

    @property
    def writers(self) -> tuple[str, ...]:
        return tuple(self.rates) or WRITERS


def sandbox_toml(terms: Terms) -> str:
    """The sandbox's side. Pictures and engines have no limit: what is measured is the writers' scarcity."""
    low, high = terms.first_byte
    waits = f"first_byte = [{low}, {high}]\n"
    parts = ["seed = 11\n"]
    for name in terms.writers:
        rate = terms.rates.get(name)
        limit = f"rate = {rate}\nburst = {terms.burst(name)}\n" if rate and terms.refusable else ""
        faults = f"http_500 = {terms.faults / 2}\nhang = {terms.faults / 2}\nhang_seconds = 8\n"
        parts.append(f"[providers.{name}]\n{limit}{waits}{faults}")
    parts.append(f"[images]\n{waits}")
    parts += [f"[engines.{name}]\n{waits}" for name in ENGINES]
    latency = "latency = [0.05, 0.2]\n" if high else ""
    parts.append(f'[sites.blog]\nkind = "wordpress"\n{latency}lost_reply = {terms.lost_replies}\n')
    return "\n".join(parts)


def channels_toml(terms: Terms) -> str:
    """Our side: what an operator would write into channels.toml for such providers."""
    rates = terms.rates if terms.channel_rates is None else terms.channel_rates
    parts = ["allow_private_addresses = true\n"]
    parts += [_channel(name, "write", terms.concurrency, rates.get(name)) for name in terms.writers]
    parts.append(_channel("images", "illustrate", terms.concurrency))
    parts += [_channel(name, "answer", terms.concurrency) for name in ENGINES]
    parts.append(
        '[sites.blog]\nkind = "wordpress"\nbase_url = "{env:CITELOOP_SANDBOX_URL}/blog"\n'
        'user_env = "SANDBOX_BLOG_USER"\nsecret_env = "SANDBOX_BLOG_PASSWORD"\n'
        f'concurrency = {terms.concurrency}\nmax_server_time = "3s"\n{_PATIENCE.splitlines()[0]}\n'
    )
    return "\n".join(parts)


def _channel(name: str, role: str, concurrency: int, rate: float | None = None) -> str:
    dialect = "openai_images" if role == "illustrate" else "openai_chat"
    limit = f'rate = "{rate:g}/s"\nburst = 1\n' if rate is not None else ""
    stream = "true" if role == "write" else "false"
    return (
        f'[channels.{name}]\nroles = ["{role}"]\ndialect = "{dialect}"\n'
        f'base_url = "{{env:CITELOOP_SANDBOX_URL}}{_PATHS.get(name, f"/{name}/v1")}"\n'
        f'model = "{_MODELS.get(name, f"{name}-bench")}"\nkey_env = "SANDBOX_KEY"\n'
        f"{limit}concurrency = {concurrency}\nstream = {stream}\n{_PATIENCE}"
    )


def written(terms: Terms, folder: Path) -> tuple[Path, Path]:
    """(the sandbox's file, the channels' file)"""
    folder.mkdir(parents=True, exist_ok=True)
    sandbox, channels = folder / "sandbox.toml", folder / "channels.toml"
    sandbox.write_text(sandbox_toml(terms))
    channels.write_text(channels_toml(terms))
    return sandbox, channels

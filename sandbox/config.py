"""What the sandbox is told to be: limits, latencies and fault rates, read from TOML and changed live."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Rate = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0)]
Span = tuple[Seconds, Seconds]
"""Lowest and highest number of seconds; the seed picks between them."""

HOOK_SECRET = "whsec_Y2l0ZWxvb3Agc2FuZGJveCwgMzIgYnl0ZXMgbG9uZyE="  # noqa: S105 - the sandbox keeps no secret


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServiceSettings(Settings):
    """One rate-limited service: a chat provider, the image endpoint or an answer engine."""

    key: str = "sandbox-key"
    rate: float | None = Field(default=None, gt=0)
    """Calls per second; None is unlimited."""
    burst: int = Field(default=1, ge=1)
    concurrency: int | None = Field(default=None, ge=1)
    retry_after: Seconds | None = None
    """What a 429 asks for; None: the seconds until the bucket has a token again."""
    first_byte: Span = (0.0, 0.0)
    per_chunk: Span = (0.0, 0.0)
    keep_alive: Rate = 0.0
    """Share of the streams that send `: keep-alive` comments while the model is queued."""
    first_byte_silence: Seconds = 0.0
    mid_stream_silence: Seconds = 0.0
    http_500: Rate = 0.0
    http_503: Rate = 0.0
    reset: Rate = 0.0
    hang: Rate = 0.0
    hang_seconds: Seconds = 60.0
    truncated: Rate = 0.0
    empty: Rate = 0.0
    html: Rate = 0.0
    exhausted: bool = False
    """The account has no money left."""
    refuse: tuple[str, ...] = ()
    """A prompt that contains one of these gets the provider's content refusal."""

    def fault_rates(self) -> dict[str, float]:
        return {
            "http_500": self.http_500,
            "http_503": self.http_503,
            "reset": self.reset,
            "hang": self.hang,
            "truncated": self.truncated,
            "empty": self.empty,
            "html": self.html,
        }


class EngineSettings(ServiceSettings):
    not_searched: Rate = 0.0
    """Share of the answers given without a search: no sources, generic text."""


class WordPressSettings(Settings):
    kind: Literal["wordpress"] = "wordpress"
    user: str = "citeloop"
    password: str = "sandbox app pass"  # noqa: S105 - the sandbox keeps no secret
    public_url: str = ""
    """Address under which readers see the site; empty: the address the caller used."""
    latency: Span = (0.0, 0.0)
    lost_reply: Rate = 0.0
    slow_insert: Rate = 0.0
    slow_insert_seconds: Seconds = 5.0
    http_500: Rate = 0.0
    html_403: Rate = 0.0

    def fault_rates(self) -> dict[str, float]:
        return {
            "http_500": self.http_500,
            "html_403": self.html_403,
            "lost_reply": self.lost_reply,
            "slow_insert": self.slow_insert,
        }


class WebhookSettings(Settings):
    kind: Literal["webhook"] = "webhook"
    secret: str = HOOK_SECRET
    public_url: str = ""
    latency: Span = (0.0, 0.0)
    delay: Span = (0.0, 0.0)
    """From the 202 to the callback."""
    doubled: Rate = 0.0
    late: Rate = 0.0
    late_seconds: Seconds = 3.0
    """Added to the delay of a late callback."""
    never: Rate = 0.0
    lost_reply: Rate = 0.0
    http_500: Rate = 0.0
    html_403: Rate = 0.0
    """A challenge page of a firewall in front of the site; the event does not arrive."""
    retry_waits: tuple[Seconds, ...] = (0.5, 1.0, 2.0, 5.0, 10.0)
    """A callback that is not answered with 2xx is repeated, with the same id, after these."""

    def fault_rates(self) -> dict[str, float]:
        return {"http_500": self.http_500, "html_403": self.html_403, "lost_reply": self.lost_reply}


SiteSettings = Annotated[WordPressSettings | WebhookSettings, Field(discriminator="kind")]
AnySettings = ServiceSettings | EngineSettings | WordPressSettings | WebhookSettings

WRITERS = ("deepseek", "doubao", "qwen")
EngineName = Literal["perplexity", "hunyuan"]
ENGINES: tuple[EngineName, ...] = ("perplexity", "hunyuan")
IMAGES = "images"


class Config(Settings):
    seed: int = 7
    providers: dict[str, ServiceSettings] = {}
    images: ServiceSettings = ServiceSettings()
    engines: dict[EngineName, EngineSettings] = {}
    sites: dict[str, SiteSettings] = {}

    @model_validator(mode="after")
    def _one_name_one_part(self) -> Self:
        services = {*WRITERS, *ENGINES, *self.providers, IMAGES}
        if clash := services.intersection(self.sites):
            raise ValueError(f"a site cannot be called {min(clash)!r}: a service has that name")
        if clash := {*ENGINES, IMAGES}.intersection(self.providers):
            raise ValueError(f"a provider cannot be called {min(clash)!r}: it has a table of its own")
        return self

    def by_name(self) -> dict[str, AnySettings]:
        """Every part of the world under the name that `/_config` and the ledger use."""
        parts: dict[str, AnySettings] = {name: ServiceSettings() for name in WRITERS}
        parts |= self.providers
        parts[IMAGES] = self.images
        parts |= {name: EngineSettings() for name in ENGINES}
        parts |= {str(name): settings for name, settings in self.engines.items()}
        parts |= {"blog": WordPressSettings(), "hook": WebhookSettings()}
        return parts | self.sites


def load(path: Path) -> Config:
    """Raises OSError, tomllib.TOMLDecodeError or pydantic.ValidationError."""
    with path.open("rb") as file:
        return Config.model_validate(tomllib.load(file))

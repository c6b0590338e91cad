"""Dialects that make or find pictures. One dialect, one file; a new one is added to this table."""

from collections.abc import Callable, Mapping

from citeloop.channels.illustrators.ark_seedream import ArkSeedream
from citeloop.channels.illustrators.dashscope_images import DashScopeImages
from citeloop.channels.illustrators.openai_images import OpenAIImages
from citeloop.channels.illustrators.pexels import Pexels
from citeloop.channels.illustrators.unsplash import Unsplash
from citeloop.channels.ports import Illustrator
from citeloop.channels.wire import Wire
from citeloop.models.channel import ChannelSpec

DIALECTS: Mapping[str, Callable[[ChannelSpec, str, Wire, Wire], Illustrator]] = {
    "ark_seedream": ArkSeedream,
    "dashscope_images": DashScopeImages,
    "openai_images": OpenAIImages,
    "pexels": Pexels,
    "unsplash": Unsplash,
}
"""By name: spec, key, wire to the provider, checked wire for addresses that the provider names → illustrator."""

"""Dialects that answer with sources. One dialect, one file; a new one is added to this table."""

from collections.abc import Callable, Mapping

from citeloop.channels.engines.openai_chat import OpenAIChatEngine
from citeloop.channels.ports import Engine
from citeloop.channels.wire import Wire
from citeloop.models.channel import ChannelSpec

DIALECTS: Mapping[str, Callable[[ChannelSpec, str, Wire], Engine]] = {
    "openai_chat": OpenAIChatEngine,
}
"""By name: spec, key, wire → engine."""

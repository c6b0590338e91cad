"""Dialects that write. One dialect, one file; a new one is added to this table."""

from collections.abc import Callable, Mapping

from citeloop.channels.ports import Writer
from citeloop.channels.wire import Wire
from citeloop.channels.writers.openai_chat import OpenAIChatWriter
from citeloop.models.channel import ChannelSpec

DIALECTS: Mapping[str, Callable[[ChannelSpec, str, Wire], Writer]] = {
    "openai_chat": OpenAIChatWriter,
}
"""By name: spec, key, wire → writer."""

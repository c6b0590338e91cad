"""Dialects that write. One dialect, one file; a new one is added to this table."""

from collections.abc import Callable, Mapping

from citeloop.channels.ports import Writer
from citeloop.channels.wire import Wire
from citeloop.channels.writers.anthropic_messages import AnthropicMessagesWriter
from citeloop.channels.writers.dashscope import DashScopeWriter
from citeloop.channels.writers.gemini import GeminiWriter
from citeloop.channels.writers.openai_chat import OpenAIChatWriter
from citeloop.channels.writers.openai_responses import OpenAIResponsesWriter
from citeloop.models.channel import ChannelSpec

DIALECTS: Mapping[str, Callable[[ChannelSpec, str, Wire], Writer]] = {
    "anthropic_messages": AnthropicMessagesWriter,
    "dashscope": DashScopeWriter,
    "gemini": GeminiWriter,
    "openai_chat": OpenAIChatWriter,
    "openai_responses": OpenAIResponsesWriter,
}
"""By name: spec, key, wire → writer."""

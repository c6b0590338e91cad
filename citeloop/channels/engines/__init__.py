"""Dialects that answer with sources. One dialect, one file; a new one is added to this table."""

from collections.abc import Callable, Mapping

from citeloop.channels.engines.anthropic_messages import AnthropicMessagesEngine
from citeloop.channels.engines.dashscope import DashScopeEngine
from citeloop.channels.engines.gemini import GeminiEngine
from citeloop.channels.engines.kimi_search import KimiSearchEngine
from citeloop.channels.engines.openai_chat import OpenAIChatEngine
from citeloop.channels.engines.openai_responses import OpenAIResponsesEngine
from citeloop.channels.ports import Engine
from citeloop.channels.wire import Wire
from citeloop.models.channel import ChannelSpec

DIALECTS: Mapping[str, Callable[[ChannelSpec, str, Wire], Engine]] = {
    "anthropic_messages": AnthropicMessagesEngine,
    "dashscope": DashScopeEngine,
    "gemini": GeminiEngine,
    "kimi_search": KimiSearchEngine,
    "openai_chat": OpenAIChatEngine,
    "openai_responses": OpenAIResponsesEngine,
}
"""By name: spec, key, wire → engine."""

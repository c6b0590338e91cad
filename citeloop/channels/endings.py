"""How a text may end without being an article: the same few ways in every dialect."""

from citeloop.channels.errors import ChannelError, Remedy
from citeloop.channels.judging import garbled
from citeloop.channels.reply import HttpReply

COMPLETE = frozenset({"stop", "end_turn", "eos", "stop_sequence"})
FILTERED = frozenset({"content_filter", "sensitive", "content_policy", "safety"})
TRUNCATED = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})


def truncated(reply: HttpReply) -> ChannelError:
    return garbled(reply, "truncated: the token limit ended the text", change="raise_max_tokens")


def thought_only(reply: HttpReply) -> ChannelError:
    return garbled(reply, "empty: all tokens went into thinking", change="raise_max_tokens_or_disable_thinking")


def empty(reply: HttpReply) -> ChannelError:
    return garbled(reply, "empty: the reply has no text", remedy=Remedy.RETRY_FAST)


def unfinished(reply: HttpReply, field: str, value: str, remedy: Remedy | None = None) -> ChannelError:
    return garbled(reply, f"not finished: {field} is {value or 'missing'}", remedy=remedy)

"""How a text may end without being an article: the same few ways in every dialect."""

import re

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.foreign import text_at
from citeloop.channels.judging import fault, garbled
from citeloop.channels.reply import HttpReply

COMPLETE = frozenset(
    {"stop", "end_turn", "eos", "eos_token", "stop_sequence", "complete", "completed", "finished", "normal"}
)
FILTERED = frozenset(
    {
        "content_filter", "content_filtered", "content_policy", "content_policy_violation", "content_blocked",
        "sensitive", "safety", "refusal", "recitation", "blocklist", "blocked", "prohibited_content", "moderation",
        "spii", "image_safety", "model_armor", "guardrail", "guardrail_intervened", "guardrails", "censored", "risk",
    }
)  # fmt: skip
FULL = frozenset({"model_length", "model_context_window_exceeded", "context_length", "context_length_exceeded"})
"""What the model can hold at all is full: more tokens would not help."""
TRUNCATED = FULL | frozenset(
    {"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_length", "token_limit", "length_limit"}
)
_BETWEEN_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|[\s-]+")


def ending(place: JsonValue, *path: str | int) -> str:
    """The reason at `path` as the sets above spell it: MAX_TOKENS, maxTokens and max-tokens are one."""
    return _BETWEEN_WORDS.sub("_", text_at(place, *path).strip()).lower().removeprefix("finish_reason_")


def filtered(reply: HttpReply, reason: str) -> ChannelError:
    if reason == "refusal":
        return fault(Fault.REFUSED, reply, "the model refused")
    if reason == "recitation":
        return fault(Fault.REFUSED, reply, f"the output was too close to a source: {reason}", change="rephrase")
    return fault(Fault.REFUSED, reply, f"filtered: {reason}")


def truncated(reply: HttpReply, reason: str = "") -> ChannelError:
    if reason in FULL:
        return garbled(reply, "truncated: the context window is full", change="shorten_input")
    return garbled(reply, "truncated: the token limit ended the text", change="raise_max_tokens")


def thought_only(reply: HttpReply) -> ChannelError:
    return garbled(reply, "empty: all tokens went into thinking", change="raise_max_tokens_or_disable_thinking")


def empty(reply: HttpReply) -> ChannelError:
    return garbled(reply, "empty: the reply has no text", remedy=Remedy.RETRY_FAST)


def unfinished(reply: HttpReply, field: str, value: str, remedy: Remedy | None = None) -> ChannelError:
    return garbled(reply, f"not finished: {field} is {value or 'missing'}", remedy=remedy)

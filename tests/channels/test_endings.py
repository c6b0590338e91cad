"""Why a text ended, in every spelling that providers and gateways have for the same few reasons."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from citeloop.channels.chat import decode_chat
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.generation import decode_generation
from citeloop.channels.grounding import decode_gemini
from citeloop.channels.reply import HttpReply
from citeloop.channels.responses import decode_responses
from citeloop.channels.turns import decode_turn

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
Ended = Callable[[str], object]


def chat(reason: str) -> object:
    choice = {"index": 0, "message": {"content": "Tea."}, "finish_reason": reason}
    return decode_chat(reply({"choices": [choice]}))


def gemini(reason: str) -> object:
    return decode_gemini(reply({"candidates": [{"content": {"parts": [{"text": "Tea."}]}, "finishReason": reason}]}))


def generation(reason: str) -> object:
    return decode_generation(reply({"output": {"text": "Tea.", "finish_reason": reason}}))


def turn(reason: str) -> object:
    return decode_turn(reply({"type": "message", "content": [{"type": "text", "text": "Tea."}], "stop_reason": reason}))


def incomplete(reason: str) -> object:
    output = [{"type": "message", "content": [{"type": "output_text", "text": "Tea."}]}]
    payload = {"object": "response", "status": "incomplete", "incomplete_details": {"reason": reason}, "output": output}
    return decode_responses(reply(payload))


def reply(payload: object) -> HttpReply:
    return HttpReply(200, {}, json.dumps(payload).encode(), NOW)


def failure(ended: Callable[[], object]) -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        ended()
    return raised.value


@pytest.mark.parametrize("ended", [chat, gemini, generation, turn])
@pytest.mark.parametrize(
    "reason",
    ["stop", "STOP", "FINISH_REASON_STOP", "end_turn", "endTurn", "eos", "stop_sequence", "completed", " Stop "],
)
def test_a_text_that_came_to_its_end_is_taken_in_every_spelling(ended: Ended, reason: str) -> None:
    assert getattr(ended(reason), "text", "") == "Tea."


@pytest.mark.parametrize("ended", [chat, gemini, generation, turn, incomplete])
@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("length", "raise_max_tokens"),
        ("LENGTH", "raise_max_tokens"),
        ("max_tokens", "raise_max_tokens"),
        ("MAX_TOKENS", "raise_max_tokens"),
        ("maxTokens", "raise_max_tokens"),
        ("max_length", "raise_max_tokens"),
        ("max_output_tokens", "raise_max_tokens"),
        ("model_length", "shorten_input"),
        ("model_context_window_exceeded", "shorten_input"),
    ],
)
def test_a_text_that_was_cut_is_no_article_and_says_what_to_change(ended: Ended, reason: str, change: str) -> None:
    error = failure(lambda: ended(reason))
    assert (error.fault, error.change) == (Fault.GARBLED, change)
    assert error.message.startswith("truncated")


@pytest.mark.parametrize("ended", [chat, gemini, generation, turn, incomplete])
@pytest.mark.parametrize(
    "reason",
    [
        "content_filter", "CONTENT_FILTER", "content-filter", "contentFilter", "content_filtered", "sensitive",
        "safety", "SAFETY", "prohibited_content", "PROHIBITED_CONTENT", "refusal", "blocklist", "recitation",
        "RECITATION", "SPII", "guardrail_intervened", "moderation",
    ],
)  # fmt: skip
def test_a_filter_is_a_refusal_in_every_dialect_and_spelling(ended: Ended, reason: str) -> None:
    error = failure(lambda: ended(reason))
    assert error.fault is Fault.REFUSED
    assert (error.change == "rephrase") is (reason.lower() == "recitation")


@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        ("Network_Error", Fault.UNAVAILABLE),
        ("INSUFFICIENT_SYSTEM_RESOURCE", Fault.OVERLOADED),
        ("timeout", Fault.TIMED_OUT),
        ("abort", Fault.UNAVAILABLE),
        ("tool_calls", Fault.GARBLED),
        ("whatever", Fault.GARBLED),
    ],
)
def test_a_provider_that_gave_up_is_told_from_an_end_that_nobody_knows(reason: str, fault: Fault) -> None:
    assert failure(lambda: chat(reason)).fault is fault


@pytest.mark.parametrize("candidates", [None, [], [{}], [{"content": {}}], [{"finishReason": "STOP"}]])
def test_a_prompt_that_gemini_blocked_is_refused_whatever_stands_beside_the_reason(candidates: object) -> None:
    payload = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "candidates": candidates}
    assert failure(lambda: decode_gemini(reply(payload))).fault is Fault.REFUSED


def test_a_complete_candidate_is_taken_although_the_feedback_has_something_to_say() -> None:
    candidate = {"content": {"parts": [{"text": "Tea."}]}, "finishReason": "STOP"}
    assert decode_gemini(reply({"promptFeedback": {"blockReason": "OTHER"}, "candidates": [candidate]})).text == "Tea."


@pytest.mark.parametrize("status", ["completed", "COMPLETED", ""])
def test_a_response_is_complete_in_any_case(status: str) -> None:
    output = [{"type": "message", "content": [{"type": "output_text", "text": "Tea."}]}]
    said = decode_responses(reply({"object": "response", "status": status, "output": output}))
    assert getattr(said, "text", "") == "Tea."

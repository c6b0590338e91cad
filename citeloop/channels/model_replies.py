"""Replies of models and search engines, judged by the shape they have: a gateway may speak any dialect."""

import json
import re
from collections.abc import Callable
from dataclasses import replace

from pydantic import JsonValue

from citeloop.channels.chat import decode_chat
from citeloop.channels.citations import listed
from citeloop.channels.endings import ending
from citeloop.channels.errors import Remedy
from citeloop.channels.events import parse_events
from citeloop.channels.fibers import decode_fiber
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.generation import decode_generation
from citeloop.channels.grounding import decode_gemini
from citeloop.channels.handling import Judgement, accepted, unfinished
from citeloop.channels.illustrators.ark_seedream import decode_seedream
from citeloop.channels.judging import garbled, judge, unreadable
from citeloop.channels.reply import Body, HttpReply, Shape, parse_json, read_body
from citeloop.channels.responses import Pending, decode_responses
from citeloop.channels.said import Said
from citeloop.channels.stock import decode_pexels, decode_unsplash
from citeloop.channels.tasks import Task, decode_task
from citeloop.channels.turns import Paused, decode_turn

Judge = Callable[[HttpReply], Judgement]

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def by_shape(otherwise: Judge) -> Judge:
    """Judge by what the first payload looks like; `otherwise` takes replies of no known shape."""

    def judged(reply: HttpReply) -> Judgement:
        return (_judge_of(_first_payload(read_body(reply))) or otherwise)(reply)

    return judged


def judge_chat(reply: HttpReply) -> Judgement:
    choice = at(read_body(reply).json, "choices", 0)
    if reply.ok and ending(choice, "finish_reason") == "tool_calls" and at(choice, "message", "tool_calls"):
        return unfinished(Remedy.CONTINUE_TURN, "the model asks for a tool: run it and send its result back")
    chat = decode_chat(reply)
    return accepted(
        f"a complete text of {len(chat.text)} characters by {chat.model or '?'}", request_id=chat.request_id
    )


def judge_responses(reply: HttpReply) -> Judgement:
    answer = decode_responses(reply)
    if isinstance(answer, Pending):
        return unfinished(Remedy.POLL, f"not finished: ask for response {answer.id[:60]} again")
    return _told(answer)


def judge_turn(reply: HttpReply) -> Judgement:
    answer = decode_turn(reply)
    if isinstance(answer, Paused):
        return unfinished(Remedy.CONTINUE_TURN, "pause_turn: send the content back as it is, and the model goes on")
    return _told(answer)


def judge_gemini(reply: HttpReply) -> Judgement:
    return _told(decode_gemini(reply))


def judge_generation(reply: HttpReply) -> Judgement:
    return _told(decode_generation(reply))


def judge_task(reply: HttpReply) -> Judgement:
    answer = decode_task(reply)
    if isinstance(answer, Task):
        return unfinished(Remedy.POLL, f"not finished: ask for task {answer.id[:60]} again")
    return accepted("a picture: fetch it at once, its address is short-lived", request_id=answer.request_id)


def judge_picture(reply: HttpReply) -> Judgement:
    made = decode_seedream(reply)
    how = "at an address, fetch it at once" if made.url else f"of {len(made.data)} bytes"
    return accepted(f"a picture {how}", request_id=made.request_id)


def judge_fiber(reply: HttpReply) -> Judgement:
    fiber = decode_fiber(reply)
    found = len(fiber.references)
    return unfinished(Remedy.CONTINUE_TURN, f"a search with {found} readable references: send its output back")


def judge_unsplash(reply: HttpReply) -> Judgement:
    return _photos(len(decode_unsplash(reply)))


def judge_pexels(reply: HttpReply) -> Judgement:
    return _photos(len(decode_pexels(reply)))


def judge_tencent(reply: HttpReply) -> Judgement:
    """Tencent Cloud's `Response`: a search whose pages are JSON in strings, or a chat in PascalCase."""
    body = read_body(reply)
    if error := judge(reply, body):
        raise error
    answer = at(body.json, "Response")
    if isinstance(at(answer, "Pages"), list):
        pages = listed([_parsed(one) for one in items_at(answer, "Pages")])
        return accepted(f"{len(pages)} readable pages; each was a string of JSON")
    if at(answer, "Choices") is None:
        raise garbled(reply, "the response holds neither pages nor choices")
    return judge_chat(replace(reply, headers={}, body=json.dumps(_small(answer)).encode()))


def judge_anything(reply: HttpReply) -> Judgement:
    """For services of which only the transport is known."""
    body = read_body(reply)
    if error := judge(reply, body):
        raise error
    if body.shape in {Shape.JSON, Shape.EMPTY}:
        return accepted("nothing complains")
    raise unreadable(reply, body, "JSON")


def _judge_of(payload: JsonValue) -> Judge | None:
    if not isinstance(payload, dict):
        return None
    kind = text_at(payload, "type")
    found: Judge | None = None
    if "Response" in payload:
        found = judge_tencent
    elif text_at(payload, "object") == "fiber":
        found = judge_fiber
    elif payload.keys() & {"candidates", "promptFeedback", "usageMetadata"}:
        found = judge_gemini
    elif payload.keys() & {"choices"}:
        found = judge_chat
    elif text_at(payload, "object") == "response" or kind.startswith("response.") or _is_list(payload, "output"):
        found = judge_responses
    elif isinstance(payload.get("output"), dict):
        found = judge_task if _is_picture_task(payload["output"]) else judge_generation
    elif kind in {"message", "message_start", "ping", "content_block_start"}:
        found = judge_turn
    elif kind.startswith("image_generation") or _is_list(payload, "data"):
        found = judge_picture if kind or text_at(payload, "object") != "list" else judge_anything
    return found


def _is_picture_task(output: JsonValue) -> bool:
    pictures = [one for one in items_at(output, "choices", 0, "message", "content") if at(one, "image")]
    return bool(text_at(output, "task_status") or text_at(output, "task_id") or pictures)


def _is_list(payload: JsonValue, name: str) -> bool:
    return isinstance(at(payload, name), list)


def _first_payload(body: Body) -> JsonValue:
    if body.shape is not Shape.EVENTS:
        return body.json[0] if isinstance(body.json, list) and body.json else body.json
    try:
        return parse_json(next(parse_events(body.raw)).data)
    except (ValueError, StopIteration):
        return None


def _told(said: Said) -> Judgement:
    evidence = "with evidence of a search" if said.searched else "without evidence of a search"
    sources = f"{evidence}, {len(said.cited)} pages cited, {len(said.retrieved)} retrieved"
    why = f"a complete text of {len(said.text)} characters by {said.model or '?'}, {sources}"
    return accepted(why, request_id=said.request_id)


def _photos(found: int) -> Judgement:
    return accepted(f"{found} photographs" if found else "nothing found: search more broadly, or go on without")


def _parsed(text: JsonValue) -> JsonValue:
    try:
        return parse_json(text) if isinstance(text, str) else text
    except ValueError:
        return None


def _small(value: JsonValue) -> JsonValue:
    """PascalCase keys as the chat shape writes them: `FinishReason` → `finish_reason`."""
    if isinstance(value, dict):
        return {_WORD_START.sub("_", name).lower(): _small(one) for name, one in value.items()}
    return [_small(one) for one in value] if isinstance(value, list) else value

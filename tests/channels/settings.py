"""What the tests of this room call with."""

import json
from collections.abc import Mapping
from datetime import timedelta

from citeloop.channels.ports import Call, Messages
from citeloop.models.channel import ChannelSpec, Price, Role
from citeloop.models.plan import CallPolicy

KEY = "sk-test-0123456789abcdefghij"
MESSAGES = Messages(system="Write.", user="About tea.")


def call(**seconds: float) -> Call:
    """A call with the given patience, in seconds by the policy's names."""
    policy = CallPolicy(**{name: timedelta(seconds=value) for name, value in seconds.items()})
    return Call(purchase_id="tenant/article/generate/0", policy=policy)


def spec(base_url: str, **changes: object) -> ChannelSpec:
    fields: dict[str, object] = {
        "name": "deepseek",
        "roles": frozenset({Role.WRITE, Role.ANSWER}),
        "dialect": "openai_chat",
        "base_url": base_url,
        "model": "deepseek-flash",
        "key_env": "KEY",
        "price": Price(input=2_000_000, output=8_000_000),
    }
    return ChannelSpec.model_validate(fields | changes)


def chat_body(text: str = "hello", finish: str | None = "stop", evidence: Mapping[str, object] | None = None) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 50}
    return json.dumps({"id": "c1", "model": "m", "choices": [choice], "usage": usage} | dict(evidence or {})).encode()


def chunk(text: str, finish: str | None = None) -> bytes:
    payload = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    return f"data: {json.dumps(payload)}\n\n".encode()


DONE = b"data: [DONE]\n\n"

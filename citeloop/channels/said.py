"""What a dialect understood of a good reply, the same for all dialects, and what it becomes for a caller."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from citeloop.channels.costs import cost_of
from citeloop.channels.ports import Completion
from citeloop.channels.reply import HttpReply, read_body
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer, Citation
from citeloop.models.usage import Usage

_RAW_LIMIT = 200_000
"""Characters of a raw reply that are kept with an answer."""


@dataclass(frozen=True, slots=True)
class Said:
    """A complete, non-empty text, with the evidence of a search if there was one."""

    text: str
    model: str
    request_id: str
    usage: Usage = field(default_factory=Usage)
    cited: tuple[Citation, ...] = ()
    retrieved: tuple[Citation, ...] = ()
    queries: tuple[str, ...] = ()
    searched: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """Something said, with the body it came in and the moment it came."""

    said: Said
    raw: str
    at: datetime


def received(said: Said, reply: HttpReply) -> Received:
    return Received(said, read_body(reply).text[:_RAW_LIMIT], reply.received_at)


def as_completion(spec: ChannelSpec, one: Received) -> Completion:
    said = one.said
    return Completion(
        text=said.text,
        model=said.model or spec.model,
        request_id=said.request_id,
        input_tokens=said.usage.input_tokens,
        output_tokens=said.usage.output_tokens,
        cost=cost_of(spec, said.usage, one.at.date()),
        usage=said.usage,
    )


def as_answer(spec: ChannelSpec, one: Received) -> Answer:
    said = one.said
    return Answer(
        text=said.text,
        cited=said.cited,
        retrieved=said.retrieved,
        queries=said.queries,
        searched=said.searched,
        model=said.model or spec.model,
        request_id=said.request_id,
        raw=one.raw,
        cost=cost_of(spec, said.usage, one.at.date()),
        usage=said.usage,
    )


def with_usage(one: Received, earlier: Usage) -> Received:
    """`one` as the last of several paid requests."""
    return replace(one, said=replace(one.said, usage=earlier.plus(one.said.usage)))

"""Manifests, questions and answers. The definitions follow docs/metrics.md."""

from pydantic import AwareDatetime, Field

from citeloop.models.brand import Entity
from citeloop.models.money import Money
from citeloop.models.record import Record
from citeloop.models.usage import Usage
from citeloop.models.work import SampleStatus


class Prompt(Record):
    id: str
    text: str = Field(min_length=1)
    locale: str
    keyword: str | None = None
    """The keyword it measures; None for a control prompt."""
    branded: bool = False
    """Whether the question itself names the brand: never pooled with the others."""


class Manifest(Record):
    """The frozen basis of a measurement. Two windows compare only under the same manifest."""

    id: str
    version: int = 1
    brand: Entity
    rivals: tuple[Entity, ...] = ()
    prompts: tuple[Prompt, ...]
    engines: tuple[str, ...]
    replicates: int = 1
    matcher_version: str


class Citation(Record):
    url: str
    """The page; the site's own address where the engine named no more than its domain."""
    title: str = ""


class Answer(Record):
    """One engine's reply, as bought. `searched` is evidence of a search, not the wish for one.

    Where an engine tells beside the text which part is supported by which source, the text bears `[n]` marks.
    """

    text: str
    cited: tuple[Citation, ...] = ()
    retrieved: tuple[Citation, ...] = ()
    queries: tuple[str, ...] = ()
    searched: bool
    model: str = ""
    request_id: str = ""
    raw: str = ""
    cost: Money = Money()
    usage: Usage = Usage()


class Reading(Record):
    """One answer, scored against one manifest by one matcher version."""

    status: SampleStatus
    named: bool = False
    rank: int | None = None
    prominence: float | None = None
    cited: bool = False
    supported: bool = False
    rivals_named: tuple[str, ...] = ()
    cited_urls: tuple[str, ...] = ()
    grounded: bool = False


class Sample(Record):
    """A stored reading with its place in the measurement."""

    prompt_id: str
    keyword: str | None
    branded: bool
    engine: str
    window: str
    window_start: AwareDatetime
    replicate: int
    reading: Reading

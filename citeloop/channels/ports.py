"""What the product asks of the outside world. One dialect, one file, one port."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

from pydantic import AwareDatetime

from citeloop.models.measure import Answer
from citeloop.models.money import Money
from citeloop.models.plan import CallPolicy
from citeloop.models.record import Record
from citeloop.models.usage import Usage


class Call(Record):
    """One request to the outside: under which purchase id, and how patient."""

    purchase_id: str
    """Sent as X-Client-Request-Id; two paid replies for one id are a double purchase."""
    policy: CallPolicy


class Messages(Record):
    """What a writer is told."""

    system: str
    user: str
    max_tokens: int = 4000


class Completion(Record):
    """A complete, publishable text. Truncated, empty and filtered outputs are errors, not completions."""

    text: str
    model: str
    request_id: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Money = Money()
    usage: Usage = Usage()


class Writer(Protocol):
    async def write(self, messages: Messages, call: Call) -> Completion: ...


class PictureBrief(Record):
    prompt: str
    title: str
    alt: str
    width: int = 1200
    height: int = 630


class PictureFile(Record):
    """A checked and re-encoded picture: `data` are PNG or JPEG bytes without EXIF."""

    data: bytes
    media_type: str
    width: int
    height: int
    credit: str = ""
    request_id: str = ""
    cost: Money = Money()


class Illustrator(Protocol):
    async def illustrate(self, brief: PictureBrief, call: Call) -> PictureFile: ...


class Engine(Protocol):
    async def ask(self, question: str, locale: str, call: Call) -> Answer: ...


class Post(Record):
    """One article, ready for a site. `marker` is ours and deterministic: by it the post is found again."""

    marker: str
    slug: str
    title: str
    html: str
    """Sanitised."""
    excerpt: str = ""
    locale: str = "en"
    picture: PictureFile | None = None
    picture_alt: str = ""
    callback_url: str = ""
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    author: str = ""
    """Shown where the site takes a name that is no account of its own; empty: the site's default."""
    canonical_url: str = ""
    """Only where the original stands on another page; empty: the post is its own original."""
    json_ld: str = ""
    """schema.org, safe inside a script element."""
    published_at: AwareDatetime | None = None


class Placed(Record):
    """A post that is on the site, or accepted by it (`confirmed` False: a callback will tell)."""

    remote_id: str
    url: str = ""
    confirmed: bool = True
    notes: tuple[str, ...] = ()
    """What of the post the site does not show, and why, each in one line."""


class Ability(StrEnum):
    """What a post may ask of a site. A publisher refuses what is not among its abilities."""

    PICTURE = "picture"
    TAGS = "tags"
    CATEGORIES = "categories"
    AUTHOR = "author"
    CANONICAL = "canonical"
    JSON_LD = "json_ld"
    CALLBACK = "callback"
    UPDATE = "update"
    WITHDRAW = "withdraw"


class SiteReport(Record):
    """What a check of a site found. `problems` keep articles from it; `notes` are worth knowing."""

    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


class Heard(Record):
    """One genuine callback. `event_id` is the same in every repeat."""

    event_id: str
    type: str
    remote_id: str = ""
    url: str = ""


class Undecidable(Exception):  # noqa: N818 - an answer, not a failure
    """The site offers no way to look a post up."""


class Publisher(Protocol):
    """One kind of site. Every method raises ChannelError, INVALID for what the site cannot do.

    publish: not idempotent; UNKNOWN when the post may have been inserted although no good reply came.
    look_up: None is "not there"; raises Undecidable where that cannot be told.
    update, withdraw: idempotent, and safe to repeat after any fault.
    check: faults of the site are the report, not an exception.
    """

    abilities: frozenset[Ability]

    async def publish(self, post: Post, call: Call) -> Placed: ...
    async def look_up(self, post: Post, call: Call) -> Placed | None: ...
    async def update(self, post: Post, remote_id: str, call: Call) -> Placed: ...
    async def withdraw(self, post: Post, remote_id: str, call: Call) -> None: ...
    async def check(self, call: Call) -> SiteReport: ...


@runtime_checkable
class CallsBack(Protocol):
    """A publisher whose sites confirm by callback. Raises signing.SignatureError for what must not be believed."""

    def read_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> Heard: ...

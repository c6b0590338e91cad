"""What the product asks of the outside world. One dialect, one file, one port."""

from typing import Protocol

from citeloop.models.measure import Answer
from citeloop.models.money import Money
from citeloop.models.plan import CallPolicy
from citeloop.models.record import Record


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


class Placed(Record):
    """A post that is on the site, or accepted by it (`confirmed` False: a callback will tell)."""

    remote_id: str
    url: str = ""
    confirmed: bool = True


class Undecidable(Exception):  # noqa: N818 - an answer, not a failure
    """The site offers no way to look a post up."""


class Publisher(Protocol):
    async def publish(self, post: Post, call: Call) -> Placed: ...
    async def look_up(self, post: Post, call: Call) -> Placed | None: ...

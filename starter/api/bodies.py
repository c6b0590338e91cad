"""What callers send to submit: a campaign or one article, for a brand that was put before."""

import hashlib
from typing import Annotated

from fastapi import Header
from pydantic import AwareDatetime, Field

from citeloop.models.plan import Method, MonitorPolicy, ReviewPolicy, Stage
from citeloop.models.record import Record
from citeloop.models.request import CampaignRequest, KeywordLine
from starter.api.paging import HANDLE

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]{1,200}$",
        description="The same key and request give the same answer and nothing new; another request is a conflict.",
    ),
]
Handle = Annotated[str, Field(pattern=HANDLE, description="The brand's handle, as in PUT /v1/brands/{brand}.")]


class CampaignSubmission(CampaignRequest):
    brand: Handle

    @property
    def request(self) -> CampaignRequest:
        return CampaignRequest.model_construct(**{name: getattr(self, name) for name in CampaignRequest.model_fields})


class ArticleSubmission(KeywordLine):
    """Empty channel lists mean: every channel of that role in channels.toml."""

    brand: Handle
    stages: tuple[Stage, ...] = tuple(Stage)
    writers: tuple[str, ...] = ()
    illustrators: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    methods: tuple[Method, ...] = tuple(Method)
    review: ReviewPolicy = ReviewPolicy()
    monitor: MonitorPolicy = MonitorPolicy()
    publish_at: AwareDatetime | None = None
    """Nothing is published before this; what is past is no wait."""

    @property
    def request(self) -> CampaignRequest:
        line = KeywordLine.model_construct(**{name: getattr(self, name) for name in KeywordLine.model_fields})
        own = set(ArticleSubmission.model_fields) - set(KeywordLine.model_fields) - {"brand"}
        return CampaignRequest.model_construct(
            name=self.keyword[:100], keywords=(line,), window=1, **{name: getattr(self, name) for name in own}
        )


class Reason(Record):
    reason: Annotated[str, Field(max_length=500, description="Why; stands in the article's events.")] = ""


class Priority(Record):
    priority: Annotated[int, Field(ge=1, le=5, description="1 is most urgent, 5 least.")]


def digest(submission: CampaignSubmission | ArticleSubmission) -> str:
    """What an idempotency key is bound to: the request as it was understood, not how it was spelt."""
    written = f"{type(submission).__name__}\n{submission.model_dump_json()}"
    return hashlib.sha256(written.encode()).hexdigest()

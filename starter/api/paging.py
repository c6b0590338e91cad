"""Pages by key: `after` says where the page before ended, so that what is added meanwhile shifts nothing."""

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Path, Query
from pydantic import Field

from citeloop.models.record import Record

Item = TypeVar("Item")

ULID = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
HANDLE = "^[a-z0-9][a-z0-9-]{0,39}$"
NAME = "^[a-z0-9][a-z0-9_-]{0,39}$"
MAX_LIMIT = 200

ArticleId = Annotated[str, Path(pattern=ULID, description="The article's id.")]
CampaignId = Annotated[str, Path(pattern=ULID, description="The campaign's id.")]
OfCampaign = Annotated[str | None, Query(pattern=ULID, description="Only of this campaign.")]
OfArticle = Annotated[str | None, Query(pattern=ULID, description="Only of this article.")]
After = Annotated[str | None, Query(pattern=ULID, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Items a page.")]


class Page(Record, Generic[Item]):
    items: tuple[Item, ...]
    next: str | None = Field(description="Give it as `after` for the next page; null: this is the last one.")


def paged(found: Sequence[Item], limit: int, key: Callable[[Item], str]) -> tuple[tuple[Item, ...], str | None]:
    """Of one row more than the page holds: its items, and `next`."""
    items = tuple(found[:limit])
    return items, key(items[-1]) if len(found) > limit else None

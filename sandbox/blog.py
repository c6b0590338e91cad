"""What a WordPress site keeps: posts, media and terms, with WordPress's own rules for slugs and statuses."""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar
from urllib.parse import quote, unquote

from sandbox.ledger import post_keys

STATUSES = frozenset({"publish", "future", "draft", "pending", "private"})
_SLUG_BYTES = 200
_SCHEDULED_AFTER = timedelta(minutes=1)


def sanitised(title: str) -> str:
    """WordPress's `sanitize_title`: lower case, hyphens, other scripts percent-encoded, at most 200 bytes."""
    words = re.sub(r"[^\w\s-]", "", title.lower())
    slug = re.sub(r"[\s_-]+", "-", words).strip("-")
    encoded = quote(slug).lower()
    return re.sub(r"%[0-9a-f]?$", "", encoded[:_SLUG_BYTES]).strip("-")


def as_slug(given: str) -> str:
    """A slug from a query or a path, which may hold it percent-encoded or decoded."""
    return sanitised(unquote(given))


@dataclass(frozen=True)
class Post:
    id: int
    title: str
    content: str
    excerpt: str
    slug: str
    asked_slug: str
    status: str
    date: datetime
    modified: datetime
    tags: tuple[int, ...] = ()
    categories: tuple[int, ...] = ()
    featured_media: int = 0
    meta: dict[str, object] = field(default_factory=dict)

    @property
    def keys(self) -> frozenset[str]:
        return post_keys(title=self.title, content=self.content, slug=self.asked_slug)


@dataclass(frozen=True)
class Medium:
    id: int
    slug: str
    filename: str
    media_type: str
    data: bytes
    date: datetime
    title: str
    alt_text: str = ""


@dataclass(frozen=True)
class Term:
    id: int
    name: str
    slug: str


Item = TypeVar("Item", Post, Medium)


class Shelf(Generic[Item]):
    """Items by id, and by slug, since a site of thousands is asked for one slug at a time."""

    def __init__(self) -> None:
        self._items: dict[int, Item] = {}
        self._by_slug: defaultdict[str, dict[int, Item]] = defaultdict(dict)

    def put(self, item: Item) -> None:
        """New, or in the place of the one with its id."""
        before = self._items.get(item.id)
        if before is not None and before.slug != item.slug:
            del self._by_slug[before.slug][item.id]
        self._items[item.id] = item
        self._by_slug[item.slug][item.id] = item

    def drop(self, number: int) -> None:
        slug = self._items.pop(number).slug
        del self._by_slug[slug][number]

    def get(self, number: int) -> Item | None:
        return self._items.get(number)

    def newest_first(self, slugs: Collection[str] = ()) -> list[Item]:
        """All, or those with one of the slugs."""
        found = [item for slug in slugs for item in self.called(slug)] if slugs else self._items.values()
        return sorted(found, key=lambda item: -item.id)

    def called(self, slug: str) -> list[Item]:
        return list(self._by_slug[slug].values()) if slug in self._by_slug else []

    def clear(self) -> None:
        self._items.clear()
        self._by_slug.clear()


class Blog:
    def __init__(self) -> None:
        self.posts: Shelf[Post] = Shelf()
        self.media: Shelf[Medium] = Shelf()
        self.terms: dict[str, dict[int, Term]] = {"tags": {}, "categories": {}}
        self.forget()

    def forget(self) -> None:
        self._ids = itertools.count(1)
        self.posts.clear()
        self.media.clear()
        for known in self.terms.values():
            known.clear()
        self.add_term("categories", "Uncategorized", "")

    def insert(self, post: Post) -> Post:
        """Gives the post its id, status and slug; a taken slug gets a number behind it and never fails."""
        post = replace(post, id=next(self._ids))
        post = self._settled(post)
        self.posts.put(post)
        return post

    def update(self, post: Post) -> Post:
        post = self._settled(replace(post, modified=datetime.now(UTC)))
        self.posts.put(post)
        return post

    def public(self, slug: str) -> Post | None:
        return next((post for post in self.posts.called(slug) if post.status == "publish"), None)

    def add_medium(self, filename: str, media_type: str, data: bytes, alt_text: str) -> Medium:
        stem, dot, ending = filename.rpartition(".")
        slug = _free(sanitised(stem or filename), lambda slug: bool(self.media.called(slug)))
        medium = Medium(
            id=next(self._ids),
            slug=slug,
            filename=f"{slug}{dot}{ending}",
            media_type=media_type,
            data=data,
            date=datetime.now(UTC),
            title=stem or filename,
            alt_text=alt_text,
        )
        self.media.put(medium)
        return medium

    def add_term(self, taxonomy: str, name: str, slug: str) -> tuple[Term, bool]:
        """The term, and whether it is new."""
        known = self.terms[taxonomy]
        for term in known.values():
            if term.name.casefold() == name.casefold():
                return term, False
        taken = {term.slug for term in known.values()}
        term = Term(next(self._ids), name, _free(sanitised(slug or name), taken.__contains__))
        known[term.id] = term
        return term, True

    def _settled(self, post: Post) -> Post:
        """Drafts keep their slug as asked; a post dated ahead is scheduled."""
        status = post.status
        if status in {"publish", "future"}:
            ahead = post.date - datetime.now(UTC) >= _SCHEDULED_AFTER
            status = "future" if ahead else "publish"
        if status == "trash":
            return replace(post, slug=f"{post.slug}__trashed")
        slug = sanitised(post.asked_slug) if post.asked_slug else ""
        if status not in {"draft", "pending"}:
            slug = _free(slug or sanitised(post.title) or str(post.id), lambda slug: self._holds(slug, post))
        return replace(post, status=status, slug=slug)

    def _holds(self, slug: str, post: Post) -> bool:
        """Whether another post has the slug."""
        return any(other.id != post.id and other.status != "draft" for other in self.posts.called(slug))


def _free(slug: str, taken: Callable[[str], bool]) -> str:
    """Such as `name-2` where `name` is taken."""
    if not taken(slug):
        return slug
    return next(f"{slug}-{n}" for n in itertools.count(2) if not taken(f"{slug}-{n}"))

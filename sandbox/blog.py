"""What a WordPress site keeps: posts, media and terms, with WordPress's own rules for slugs and statuses."""

import itertools
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
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


class Blog:
    def __init__(self) -> None:
        self.posts: dict[int, Post] = {}
        self.media: dict[int, Medium] = {}
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
        self.posts[post.id] = post
        return post

    def update(self, post: Post) -> Post:
        post = self._settled(replace(post, modified=datetime.now(UTC)))
        self.posts[post.id] = post
        return post

    def public(self, slug: str) -> Post | None:
        return next((p for p in self.posts.values() if p.slug == slug and p.status == "publish"), None)

    def add_medium(self, filename: str, media_type: str, data: bytes, alt_text: str) -> Medium:
        stem, dot, ending = filename.rpartition(".")
        slug = self._free(sanitised(stem or filename), {m.slug for m in self.media.values()})
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
        self.media[medium.id] = medium
        return medium

    def add_term(self, taxonomy: str, name: str, slug: str) -> tuple[Term, bool]:
        """The term, and whether it is new."""
        known = self.terms[taxonomy]
        for term in known.values():
            if term.name.casefold() == name.casefold():
                return term, False
        taken = {term.slug for term in known.values()}
        term = Term(next(self._ids), name, self._free(sanitised(slug or name), taken))
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
            others = {p.slug for p in self.posts.values() if p.id != post.id and p.status != "draft"}
            slug = self._free(slug or sanitised(post.title) or str(post.id), others)
        return replace(post, status=status, slug=slug)

    def _free(self, slug: str, taken: set[str]) -> str:
        if slug not in taken:
            return slug
        return next(f"{slug}-{n}" for n in itertools.count(2) if f"{slug}-{n}" not in taken)

"""Opaque ids. Wherever Temporal shows a name in clear, one of these stands there."""

import hashlib

from ulid import ULID


def new_id() -> str:
    """A fresh ULID, 26 characters, ordered by time."""
    return str(ULID())


def digest_id(*parts: str) -> str:
    """The ULID-shaped digest of `parts`: the same parts give the same id, in every process."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return str(ULID.from_bytes(digest[:16]))


def text_digest(text: str) -> str:
    """What a decision is bound to: the SHA-256 of the text a person saw, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def article_id(tenant_id: str, campaign_id: str, keyword: str, locale: str, kind: str) -> str:
    return digest_id("article", tenant_id, campaign_id, keyword, locale, kind)


def prompt_id(keyword: str, locale: str) -> str:
    """The question that measures a keyword; control prompts are digested the same way from their text."""
    return digest_id("prompt", keyword, locale)


def workflow_id(tenant_id: str, article_id: str) -> str:
    return f"article/{tenant_id}/{article_id}"


def correction_workflow_id(tenant_id: str, article_id: str, site: str) -> str:
    """One for each page, so that two corrections of it never race."""
    return f"correction/{tenant_id}/{article_id}/{site}"


def campaign_workflow_id(tenant_id: str, campaign_id: str) -> str:
    return f"campaign/{tenant_id}/{campaign_id}"

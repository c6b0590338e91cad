"""Corrections, as the document shows them."""

from starter.api.examples import ARTICLE_ID, DIGEST

_AT = "2026-11-29T19:45:28.120000Z"
_DRAFT_ID = "3Z5T8W4Q2N6J7R9V0XYA01KB8M"
CORRECTING = {
    "text": "# Vector databases for RAG\n\nMilvus is released under the Apache License 2.0.\n",
    "reason": "the licence was wrong",
}
_CORRECTION_ID = "01KB8M3Z5T8W4Q2N6J7R9V0XYD"
CORRECTED = {
    "id": ARTICLE_ID,
    "name": "vector database for RAG",
    "draft_id": _DRAFT_ID,
    "flags": [],
    "pages": [
        {
            "correction_id": _CORRECTION_ID,
            "site": "blog",
            "kind": "correct",
            "state": "done",
            "problem": "",
            "url": "https://blog.example.com/vector-database-for-rag",
        }
    ],
    "message": "done",
}
CORRECTION = {
    "id": _CORRECTION_ID,
    "publication_id": "7W4Q2N6J7R9V0XYA01KB8M3Z5T",
    "article_id": ARTICLE_ID,
    "site": "blog",
    "kind": "correct",
    "draft_id": _DRAFT_ID,
    "draft_digest": DIGEST,
    "by": "ci",
    "reason": "the licence was wrong",
    "state": "done",
    "problem": "",
    "asked_at": _AT,
    "ended_at": _AT,
}

"""One value of each kind, as the document shows it; a test holds each against its schema."""

from typing import Any

ARTICLE_ID = "01KB8M3Z5T8W4Q2N6J7R9V0XYA"
CAMPAIGN_ID = "01KB8M3Z5T8W4Q2N6J7R9V0XYB"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_AT = "2026-11-29T19:45:28.120000Z"
_DRAFT_ID = "3Z5T8W4Q2N6J7R9V0XYA01KB8M"
_REVISION = "5T8W4Q2N6J7R9V0XYA01KB8M3Z"
_MANIFEST_ID = "6J7R9V0XYA01KB8M3Z5T8W4Q2N"

ENTITY = {"name": "Milvus", "aliases": [{"text": "Milvus"}], "domains": ["milvus.io"]}
FACTS = [
    {
        "id": "license",
        "text": "Milvus is released under the Apache License 2.0.",
        "source_url": "https://github.com/milvus-io/milvus/blob/master/LICENSE",
        "locale": "en",
    }
]
RIVALS = [{"name": "Qdrant", "aliases": [{"text": "Qdrant"}], "domains": ["qdrant.tech"]}]
BRAND = {
    "entity": ENTITY,
    "homepage": "https://milvus.io",
    "description": "An open-source vector database.",
    "facts": FACTS,
    "rivals": RIVALS,
    "control_prompts": ["How are sentence embedding models trained?"],
}
BRAND_REVISION = {"handle": "milvus", "revision": _REVISION, "updated_at": _AT, "brand": BRAND}
BRANDS = {
    "items": [{"handle": "milvus", "revision": _REVISION, "updated_at": _AT, "name": "Milvus"}],
    "next": None,
}

CAMPAIGN_SUBMISSION = {
    "name": "autumn",
    "brand": "milvus",
    "keywords": [
        {"keyword": "vector database for RAG"},
        {"keyword": "向量数据库怎么选型", "locale": "zh-CN", "kind": "faq", "priority": 2},
    ],
    "review": {"mode": "human_when_flagged"},
    "monitor": {"offsets": [1, 3, 7], "replicates": 2},
}
CAMPAIGN_ACCEPTED = {
    "id": CAMPAIGN_ID,
    "articles": 2,
    "href": f"/v1/campaigns/{CAMPAIGN_ID}",
    "events": f"/v1/campaigns/{CAMPAIGN_ID}/events",
}
CAMPAIGN = {
    "id": CAMPAIGN_ID,
    "name": "autumn",
    "state": "running",
    "hold": None,
    "brand_id": _REVISION,
    "manifest_id": _MANIFEST_ID,
    "baseline_at": _AT,
    "created_at": _AT,
    "updated_at": _AT,
    "counts": {"running": 1, "measured": 1},
    "total": 2,
}
KEYWORD = {
    "article_id": ARTICLE_ID,
    "keyword": "vector database for RAG",
    "locale": "en",
    "kind": "article",
    "priority": 3,
    "state": "running",
}
ARTICLE_SUBMISSION = {
    "brand": "milvus",
    "keyword": "vector database for RAG",
    "locale": "en",
    "kind": "article",
    "review": {"mode": "human"},
}
ARTICLE_ACCEPTED = {
    "id": ARTICLE_ID,
    "href": f"/v1/articles/{ARTICLE_ID}",
    "events": f"/v1/articles/{ARTICLE_ID}/events/stream",
}
ARTICLE: dict[str, Any] = {
    "id": ARTICLE_ID,
    "campaign_id": CAMPAIGN_ID,
    "manifest_id": _MANIFEST_ID,
    "keyword": "vector database for RAG",
    "locale": "en",
    "kind": "article",
    "priority": 3,
    "state": "measured",
    "stage": "monitor",
    "done": ["generate", "rewrite", "illustrate", "review", "publish", "monitor"],
    "round": 1,
    "channel": "perplexity",
    "writer": "deepseek",
    "attempts": 9,
    "faults": 0,
    "reason": "",
    "hold": None,
    "pages": [{"site": "blog", "url": "https://blog.example.com/vector-database-for-rag", "state": "published"}],
    "warnings": [],
    "measurement": {
        "kind": "measurement",
        "baseline_ok": 2,
        "baseline_named": 0,
        "after_planned": 6,
        "after_ok": 6,
        "after_named": 4,
        "after_grounded": 6,
        "after_cited": 3,
        "first_cited_days": 1.0,
    },
    "cost": {"micros": 61200, "currency": "CNY"},
    "submitted_at": _AT,
    "started_at": _AT,
    "updated_at": _AT,
    "ended_at": _AT,
}
PARKED = {**ARTICLE, "state": "parked", "stage": "publish", "reason": "blog: unknown: no reply", "ended_at": None}
EVENT = {
    "seq": 412,
    "at": _AT,
    "kind": "enter",
    "stage": "generate",
    "state": "running",
    "detail": "by deepseek",
}
STREAM = (
    "retry: 2000\n\n"
    "id: 0-8123-412\nevent: enter\n"
    f'data: {{"article_id":"{ARTICLE_ID}","keyword":"vector database for RAG","seq":412,"at":"{_AT}",'
    '"kind":"enter","stage":"generate","state":"running","detail":"by deepseek"}\n\n'
    ": nothing new\n\n"
    'event: end\ndata: {"reason":"everything has ended"}\n\n'
)
EFFECT = {
    "id": ARTICLE_ID,
    "name": "vector database for RAG",
    "recorded": True,
    "answered": True,
    "state": "paused",
    "message": "done",
}
DRAFT: dict[str, Any] = {
    "id": _DRAFT_ID,
    "article_id": ARTICLE_ID,
    "digest": DIGEST,
    "stage": "rewrite",
    "round": 0,
    "channel": "deepseek",
    "title": "How to choose a vector database for RAG",
    "chars": 5120,
    "created_at": _AT,
    "outcome": "flagged",
    "flags": [
        {"rule": "advertising", "severity": "flag", "message": "“the best” needs a source", "excerpt": "the best"}
    ],
    "decision": None,
}
DRAFT_WITH_BODY = {**DRAFT, "body": "# How to choose a vector database for RAG\n\n…"}
DECIDING = {"action": "send_back", "draft_digest": DIGEST, "notes": "Name the licence in the first paragraph."}
DECISION = {
    "draft_id": _DRAFT_ID,
    "draft_digest": DIGEST,
    "action": "send_back",
    "by": "editor",
    "notes": "Name the licence in the first paragraph.",
    "decided_at": _AT,
}
PUBLICATION = {
    "id": "7W4Q2N6J7R9V0XYA01KB8M3Z5T",
    "article_id": ARTICLE_ID,
    "campaign_id": CAMPAIGN_ID,
    "keyword": "vector database for RAG",
    "site": "blog",
    "kind": "wordpress",
    "state": "published",
    "url": "https://blog.example.com/vector-database-for-rag",
    "reason": "",
    "reading": {
        "kind": "reading",
        "url": "https://blog.example.com/vector-database-for-rag",
        "readable": False,
        "problems": ["robots.txt bars GPTBot, PerplexityBot"],
        "notes": ["the page has no JSON-LD"],
        "checked_at": _AT,
    },
    "sent_at": _AT,
    "created_at": _AT,
    "updated_at": _AT,
}
SAMPLE = {
    "manifest_id": _MANIFEST_ID,
    "window_start": _AT,
    "prompt_id": "2N6J7R9V0XYA01KB8M3Z5T8W4Q",
    "engine": "perplexity",
    "surface": "api",
    "market": "en",
    "replicate": 0,
    "window": "after",
    "keyword": "vector database for RAG",
    "branded": False,
    "asked_at": _AT,
    "reading": {
        "status": "ok",
        "named": True,
        "rank": 2,
        "prominence": 0.81,
        "cited": True,
        "supported": True,
        "rivals_named": ["Qdrant"],
        "cited_urls": ["https://milvus.io/docs"],
        "grounded": True,
    },
}
METRICS = {
    "campaign_id": CAMPAIGN_ID,
    "manifest_id": _MANIFEST_ID,
    "matcher_version": "1",
    "prompts": "keywords",
    "branded": False,
    "windows": [
        {
            "window": "after",
            "engine": None,
            "samples": 120,
            "figures": [
                {
                    "name": "mention rate",
                    "definition": "ok answers that name the brand ÷ ok answers (上词率, per answer)",
                    "value": 0.4,
                    "numerator": 48,
                    "n": 120,
                    "prompts": 20,
                    "low": 0.29,
                    "high": 0.52,
                    "label": "",
                }
            ],
        }
    ],
}
CHANNEL = {
    "name": "deepseek",
    "roles": ["write"],
    "queue": "channel.deepseek",
    "rate": 1.2,
    "operator_rate": None,
    "adaptive_rate": None,
    "effective_rate": 1.2,
    "why": "channels.toml",
    "burst": 1,
    "calls_per_dispatch": 1,
    "concurrency": 8,
    "operator_concurrency": None,
    "paused": False,
    "pause_cause": "",
    "pause_reason": "",
    "hold_until": None,
    "hold_reason": "",
    "breaker_until": None,
    "half_open": False,
    "breaker_reason": "",
    "quota_until": None,
    "quota_reason": "",
    "tokens_per_minute": 100000,
    "calls_per_day": None,
    "tokens_per_day": None,
    "calls_last_minute": 71,
    "tokens_last_minute": 84210,
    "calls_of_quota": 0,
    "tokens_of_quota": 0,
    "vanished": False,
    "calls": 812,
    "limited": 0,
    "faults": 3,
    "last_call_at": _AT,
}

SITE = {
    "name": "blog",
    "kind": "wordpress",
    "base_url": "https://blog.example.com",
    "user": "citeloop",
    "rate": "12/min",
    "concurrency": 2,
    "labels": ["tea", "own"],
    "settings": {"tags": ["Tea"], "timeouts": {"total": "60s"}},
    "state": "active",
    "revision": 3,
    "created_at": _AT,
    "updated_at": _AT,
}
SITE_BODY = {
    "kind": "wordpress",
    "base_url": "https://blog.example.com",
    "user": "citeloop",
    "secret": "abcd efgh ijkl mnop qrst uvwx",
    "rate": "12/min",
    "concurrency": 2,
    "labels": ["tea", "own"],
    "settings": {"tags": ["Tea"], "timeouts": {"total": "60s"}},
}
SITE_CHECKED = {
    "site": "blog",
    "ok": False,
    "problems": ["the account may not publish posts: give it the role Author or Editor"],
    "notes": ["the account may not upload files: articles appear without pictures"],
}


def page(item: object, next_: str | None = None) -> dict[str, object]:
    return {"items": [item], "next": next_}

"""The six steps of an article as plain functions over httpx: what every rival does, whatever drives it.

A step takes the article so far (a dict that survives JSON) and returns it with what was gained. A fault raises
`Again(delay)`: nothing is repeated in here, since repeating is what the rivals differ in.
"""

import base64
import contextlib
import hashlib
import html
import json
import re

import httpx

WRITING = ("generate", "rewrite")
SIX = ("generate", "rewrite", "illustrate", "review", "before", "publish", "monitor")
"""`before` asks the engines what they say before the page is out."""


class Again(Exception):  # noqa: N818 - not an error: try again after `delay`
    def __init__(self, delay, limited=False):
        super().__init__(delay, limited)
        self.delay, self.limited = delay, limited


def stages_of(job):
    return SIX if job["six"] else ("generate",)


def channel_of(job, stage):
    """The limited channel the step calls, or None."""
    return job["channel"] if stage in WRITING else None


def client(world):
    patience = httpx.Timeout(20.0, connect=2.0, read=world["timeout"])
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=64)
    return httpx.Client(base_url=world["url"], timeout=patience, trust_env=False, limits=limits)


def run(world, http, job, stage, article):
    """One step. Raises Again."""
    try:
        return {**article, **STEPS[stage](world, http, job, article)}
    except (httpx.TransportError, json.JSONDecodeError) as error:
        raise Again(0.5) from error


def write(world, http, job, stage, draft):
    place = WRITING.index(stage)
    body = {
        "model": f"{job['channel']}-bench",
        "messages": [
            {"role": "system", "content": job["system"][place]},
            {"role": "user", "content": job["user"][place].replace("@@DRAFT@@", draft)},
        ],
        "max_tokens": job["max_tokens"],
        "stream": True,
    }
    path = f"/{job['channel']}/v1/chat/completions"
    with http.stream("POST", path, json=body, headers=headers(world, job, stage, job["channel"])) as reply:
        if reply.status_code != 200:  # noqa: PLR2004 - HTTP
            reply.read()
            raise again(reply)
        text, finish, whole = [], None, False
        for line in reply.iter_lines():
            if line == "data: [DONE]":
                whole = True
            elif line.startswith("data: "):
                for choice in json.loads(line[6:])["choices"]:
                    text.append(choice["delta"].get("content") or "")
                    finish = choice["finish_reason"] or finish
    found = "".join(text)
    if not whole or finish != "stop" or not found.strip():
        raise Again(0.5)
    return found


def generate(world, http, job, article):  # noqa: ARG001 - one signature for all steps
    return {"text": write(world, http, job, "generate", "")}


def rewrite(world, http, job, article):
    return {"text": write(world, http, job, "rewrite", article["text"])}


def illustrate(world, http, job, article):  # noqa: ARG001
    body = {"model": "sandbox-image", "prompt": f"A picture for “{job['keyword']}”", "n": 1, "size": "1200x672"}
    reply = http.post("/images/v1/images/generations", json=body, headers=headers(world, job, "illustrate", "images"))
    if reply.status_code != 200:  # noqa: PLR2004
        raise again(reply)
    picture = base64.b64decode(reply.json()["data"][0]["b64_json"])
    if not picture.startswith(b"\x89PNG"):
        raise Again(0.5)
    return {"picture": base64.b64encode(picture).decode()}


def review(world, http, job, article):  # noqa: ARG001
    """Rules of the simplest kind: banned words, sources, length."""
    text = article["text"]
    flags = [word for word in job["banned"] if word.casefold() in text.casefold()]
    if not re.search(r"\]\(https?://", text):
        flags.append("no source")
    if len(text.split()) < 150:  # noqa: PLR2004 - words
        flags.append("short")
    return {"flags": flags}


def before(world, http, job, article):
    """The engines' answers are kept one by one: a second try asks only those that are missing."""
    return asked(world, http, job, article, "before")


def monitor(world, http, job, article):
    return asked(world, http, job, article, "monitor")


def asked(world, http, job, article, stage):
    answers = article.setdefault(stage, {})
    for engine in world["engines"]:
        if engine in answers:
            continue
        path = "/perplexity" if engine == "perplexity" else f"/{engine}/v1"
        body = {"model": engine, "messages": [{"role": "user", "content": job["question"]}]}
        sent = headers(world, job, stage, engine)
        reply = http.post(f"{path}/chat/completions", json=body, headers=sent)
        if reply.status_code != 200:  # noqa: PLR2004
            raise again(reply)
        said = reply.json()["choices"][0]["message"]["content"]
        answers[engine] = "Milvus" in said
    return {stage: answers}


def publish(world, http, job, article):
    """Looks by its slug before it posts: the first try's reply may have been lost."""
    site, slug = "/blog/wp-json/wp/v2", hashlib.sha256(job["id"].encode()).hexdigest()[:16]
    login = httpx.BasicAuth(world["site"]["user"], world["site"]["password"])
    found = http.get(f"{site}/posts", params={"slug": slug, "status": "publish", "context": "edit"}, auth=login)
    if found.status_code != 200:  # noqa: PLR2004
        raise again(found)
    if found.json():
        return {"url": found.json()[0]["link"]}
    name = f"picture-{slug}.png"
    sent = {"Content-Type": "image/png", "Content-Disposition": f'attachment; filename="{name}"'}
    media = http.post(f"{site}/media", content=base64.b64decode(article["picture"]), headers=sent, auth=login)
    if media.status_code != 201:  # noqa: PLR2004
        raise again(media)
    title, _, body = article["text"].partition("\n")
    post = {
        "title": title.lstrip("# ").strip(),
        "content": f'{as_html(body)}<span data-citeloop="{slug}"></span>',
        "slug": slug,
        "status": "publish",
        "featured_media": media.json()["id"],
    }
    made = http.post(f"{site}/posts", json=post, auth=login)
    if made.status_code != 201:  # noqa: PLR2004
        raise again(made)
    return {"url": made.json()["link"], "picture": ""}


def as_html(text):
    return "\n".join(f"<p>{html.escape(part)}</p>" for part in text.split("\n\n") if part.strip())


def headers(world, job, stage, channel):
    """The purchase id lets the referee see whether an answer was paid for twice."""
    return {"Authorization": f"Bearer {world['key']}", "X-Client-Request-Id": f"{job['id']}/{stage}/0/{channel}"}


def again(reply):
    delay = 0.5
    with contextlib.suppress(ValueError):
        delay = float(reply.headers.get("retry-after", "0.5"))
    return Again(delay, limited=reply.status_code == 429)  # noqa: PLR2004


STEPS = {
    "generate": generate,
    "rewrite": rewrite,
    "illustrate": illustrate,
    "review": review,
    "before": before,
    "publish": publish,
    "monitor": monitor,
}

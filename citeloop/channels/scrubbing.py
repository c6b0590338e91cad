"""Messages of others, made fit for a log: one line, short, and without anything that opens a door."""

import re
from collections.abc import Iterable

from citeloop.channels.characters import storable

LONGEST = 300
_SHORTEST_SECRET = 4
_MASK = "***"
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_KEY = re.compile(
    r"\b(?:sk|ak|pk|rk|org|pplx|whsec|ghp|gho|glpat|xai|gsk|hf|bce-v3|ALTAK|LTAI|AKIA|AIza)"
    r"[-_/][-\w/.+=*]{6,}|\b(?:AIza|LTAI|AKIA|ALTAK)[-\w]{8,}"
)
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic|ghost|client-id)\s+[^\s,;\"']+"), r"\1 ***"),
    (
        re.compile(
            r"(?i)\b(api[-_ ]?key|access[-_ ]?token|secret|password|passwd|token|authorization|signature)"
            r"(\"?\s*(?:provided)?\s*[:=]\s*\"?)[^\s,;\"'&]+"
        ),
        r"\1\2***",
    ),
    (_KEY, _MASK),
    (re.compile(r"(?<![\w+/=-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+/=-]{32,}"), _MASK),
    (re.compile(r"(?i)(https?://)[^\s/@]+@"), r"\1***@"),
)


def mask(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, _MASK)
    return text


def looks_like_key(text: str) -> bool:
    return bool(_KEY.search(text))


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` in one line of at most 300 characters; `secrets` and whatever looks like a key are masked."""
    text = mask(storable(text), secrets)
    text = _BLANK.sub(" ", text[: LONGEST * 20]).strip()
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

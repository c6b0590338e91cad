"""What really happened: the judge of every claim about limits, doubles and losses."""

import hashlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field

MARKER = re.compile(r"""(?:data-citeloop[\w-]*=|<!--\s*citeloop[\w-]*[:=])\s*["']?([\w./:~-]+)""")
Json = dict[str, object]


@dataclass
class Call:
    """One call in the journal, which is told by `/_ledger?journal=1`. Times are seconds since the epoch."""

    service: str
    purchase_id: str
    at: float
    ended: float | None = None
    limited: bool = False
    paid: bool = False

    def as_json(self) -> list[object]:
        return [self.service, self.purchase_id, self.at, self.ended, self.limited, self.paid]


@dataclass
class ServiceEntry:
    """One service's calls. `times` are seconds since the epoch, one for each arrival."""

    times: list[float] = field(default_factory=list)
    limited_times: list[float] = field(default_factory=list)
    ok: int = 0
    bucket_violations: int = 0
    unauthorized: int = 0
    invalid: int = 0
    abandoned: int = 0
    bought_twice: int = 0
    inside: int = 0
    """Calls that are being answered now."""
    max_concurrent: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)

    def as_json(self, *, times: bool) -> Json:
        first, last = (self.times[0], self.times[-1]) if self.times else (None, None)
        out: Json = {
            "calls": len(self.times),
            "ok": self.ok,
            "limited": len(self.limited_times),
            "bucket_violations": self.bucket_violations,
            "unauthorized": self.unauthorized,
            "invalid": self.invalid,
            "abandoned": self.abandoned,
            "bought_twice": self.bought_twice,
            "inside": self.inside,
            "max_concurrent": self.max_concurrent,
            "faults": dict(self.faults),
            "refused": self.refused,
            "first_call": first,
            "last_call": last,
        }
        if times:
            out |= {"times": self.times, "limited_times": self.limited_times}
        return out


@dataclass
class SiteEntry:
    """One site's posts. Keys by which a post is recognised as the same are held while it stands."""

    posts: int = 0
    duplicate_posts: int = 0
    withdrawn: int = 0
    lost_replies: int = 0
    callbacks_sent: int = 0
    callbacks_delivered: int = 0
    callbacks_failed: int = 0
    doubled: int = 0
    late: int = 0
    never: int = 0
    repeats_recognised: int = 0
    """Deliveries with a webhook-id seen before; they change nothing."""
    faults: Counter[str] = field(default_factory=Counter)
    standing: Counter[str] = field(default_factory=Counter, repr=False)
    posted_at: list[float] = field(default_factory=list, repr=False)

    def placed(self, keys: frozenset[str]) -> None:
        self.posts += 1
        self.posted_at.append(time.time())
        self.duplicate_posts += any(self.standing[key] for key in keys)
        self.standing.update(keys)

    def removed(self, keys: frozenset[str]) -> None:
        self.withdrawn += 1
        self.standing.subtract(keys)

    def as_json(self, *, times: bool) -> Json:
        hidden = {"standing"} if times else {"standing", "posted_at"}
        counts = {name: value for name, value in vars(self).items() if name not in hidden}
        return {**counts, "faults": dict(self.faults)}


def post_keys(*, title: str, content: str, slug: str = "", marker: str = "") -> frozenset[str]:
    """What makes a post the same as another one: our marker, the slug asked for, or title and content."""
    digest = hashlib.sha256(f"{title}\x1f{content}".encode()).hexdigest()
    keys = {f"text:{digest}"} | {f"marker:{found}" for found in MARKER.findall(content)}
    if slug:
        keys.add(f"slug:{slug}")
    if marker:
        keys.add(f"marker:{marker}")
    return frozenset(keys)


class Ledger:
    def __init__(self) -> None:
        self.services: dict[str, ServiceEntry] = {}
        self.sites: dict[str, SiteEntry] = {}
        self.journal: list[Call] = []
        self._paid: Counter[str] = Counter()
        self._paid_twice: set[str] = set()
        self._latest: dict[tuple[str, str], Call] = {}

    def service(self, name: str) -> ServiceEntry:
        return self.services.setdefault(name, ServiceEntry())

    def site(self, name: str) -> SiteEntry:
        return self.sites.setdefault(name, SiteEntry())

    def arrived(self, name: str) -> ServiceEntry:
        entry = self.service(name)
        entry.times.append(time.time())
        return entry

    def begun(self, name: str, purchase_id: str) -> Call:
        call = Call(name, purchase_id, time.time())
        self.journal.append(call)
        self._latest[name, purchase_id] = call
        return call

    def limited(self, name: str, *, by_bucket: bool) -> None:
        entry = self.service(name)
        entry.limited_times.append(entry.times[-1])
        entry.bucket_violations += by_bucket

    def paid(self, name: str, purchase_id: str) -> None:
        """A complete reply was written to a caller who was still there."""
        entry = self.service(name)
        entry.ok += 1
        if purchase_id:
            self._paid[purchase_id] += 1
            self._latest[name, purchase_id].paid = True
            if self._paid[purchase_id] > 1:
                entry.bought_twice += 1
                self._paid_twice.add(purchase_id)

    def as_json(self, *, times: bool = False, journal: bool = False) -> Json:
        told: Json = {"journal": [call.as_json() for call in self.journal]} if journal else {}
        services, sites = self.services.values(), self.sites.values()
        faults: Counter[str] = Counter()
        for entry in services:
            faults.update(entry.faults)
        return told | {
            "providers": {name: entry.as_json(times=times) for name, entry in sorted(self.services.items())},
            "sites": {name: entry.as_json(times=times) for name, entry in sorted(self.sites.items())},
            "totals": {
                "calls": sum(len(entry.times) for entry in services),
                "ok": sum(entry.ok for entry in services),
                "limited": sum(len(entry.limited_times) for entry in services),
                "abandoned": sum(entry.abandoned for entry in services),
                "bought_twice": sum(entry.bought_twice for entry in services),
                "bought_twice_ids": sorted(self._paid_twice),
                "faults": dict(faults),
                "refused": sorted({keyword for entry in services for keyword in entry.refused}),
                "posts": sum(entry.posts for entry in sites),
                "duplicate_posts": sum(entry.duplicate_posts for entry in sites),
                "lost_replies": sum(entry.lost_replies for entry in sites),
                "callbacks_sent": sum(entry.callbacks_sent for entry in sites),
            },
        }

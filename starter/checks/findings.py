"""What a check says: one sentence, and how grave it is."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from citeloop.models.record import Record

SKEW = timedelta(seconds=2)
"""A larger difference between two clocks is worth a word: leases, holds and timers are compared across them."""


class Standing(StrEnum):
    OK = "ok"
    WARN = "warn"
    """It works; something will be worse than it could be."""
    FAIL = "fail"
    SKIPPED = "skipped"
    """Not looked at; the message says why."""


class Finding(Record):
    check: str
    standing: Standing
    message: str
    """One line. Of a warning or failure: what is wrong; then, after a semicolon, the remedy."""


class Group(Record):
    name: str
    findings: tuple[Finding, ...]


class Diagnosis(Record):
    groups: tuple[Group, ...]

    def count(self, standing: Standing) -> int:
        return sum(finding.standing is standing for group in self.groups for finding in group.findings)

    @property
    def healthy(self) -> bool:
        """Warnings do not count against it."""
        return not self.count(Standing.FAIL)


def ok(check: str, message: str) -> Finding:
    return Finding(check=check, standing=Standing.OK, message=_line(message))


def warn(check: str, message: str) -> Finding:
    return Finding(check=check, standing=Standing.WARN, message=_line(message))


def fail(check: str, message: str) -> Finding:
    return Finding(check=check, standing=Standing.FAIL, message=_line(message))


def skipped(check: str, message: str) -> Finding:
    return Finding(check=check, standing=Standing.SKIPPED, message=_line(message))


def clock(theirs: datetime, *, asked: datetime, answered: datetime, whose: str) -> Finding:
    """theirs: what their clock showed at some moment between `asked` and `answered` of ours."""
    ahead = max(theirs - answered, asked - theirs, timedelta())
    if ahead <= SKEW:
        return ok("clock", f"within {SKEW.total_seconds():g} s of this machine's")
    direction = "ahead of" if theirs > answered else "behind"
    return warn(
        "clock",
        f"{whose} clock is {ahead.total_seconds():.0f} s {direction} this machine's; "
        "let NTP set both (`timedatectl set-ntp true`)",
    )


def listed(names: Iterable[str], most: int = 5) -> str:
    """The first few of many names."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def _line(message: str) -> str:
    return " ".join(message.split())

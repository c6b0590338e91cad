"""How one kind of complaint is recognised."""

import re
from dataclasses import dataclass

from citeloop.channels.complaints import Complaint
from citeloop.channels.errors import Fault, Remedy

_NEVER = re.compile(r"(?!)")


def any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """Fits when a code or the words or the status match, and the status is one of `within` (if given).

    unless, unless_codes: words and codes by which the complaint is of another kind after all.
    change: may hold `{}` for the group of `words` that matched.
    """

    fault: Fault
    codes: re.Pattern[str] = _NEVER
    words: re.Pattern[str] = _NEVER
    statuses: frozenset[int] = frozenset()
    within: frozenset[int] | None = None
    unless: re.Pattern[str] = _NEVER
    unless_codes: re.Pattern[str] = _NEVER
    change: str = ""
    remedy: Remedy | None = None

    def fits(self, complaint: Complaint) -> bool:
        if self.within is not None and complaint.status not in self.within:
            return False
        if self.unless.search(complaint.message) or complaint.has_code(self.unless_codes):
            return False
        return (
            complaint.status in self.statuses
            or complaint.has_code(self.codes)
            or bool(self.words.search(complaint.message))
        )

    def change_for(self, complaint: Complaint) -> str:
        if "{}" not in self.change:
            return self.change
        found = self.words.search(complaint.message)
        named = next((group for group in found.groups() if group), "") if found else ""
        return self.change.format(named.lower()) if named else ""

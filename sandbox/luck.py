"""Luck by seed: what befalls a request depends on its content and on how often it was made, never on when."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """The fate of one attempt. Each label is an independent throw; the same label always falls the same."""

    def __init__(self, text: str) -> None:
        self._text = text

    def number(self, label: str) -> float:
        """In [0, 1)."""
        digest = hashlib.sha256(f"{self._text}\x1f{label}".encode()).digest()
        return int.from_bytes(digest[:7]) / 2**56

    def between(self, label: str, span: tuple[float, float]) -> float:
        low, high = span
        if low == high:
            return low
        return low + (high - low) * self.number(label)

    def happens(self, label: str, rate: float) -> bool:
        return rate > 0 and self.number(label) < rate

    def one_of(self, label: str, rates: Mapping[str, float]) -> str:
        """At most one of the named events; "" for none."""
        throw = self.number(label)
        for name, rate in rates.items():
            if throw < rate:
                return name
            throw -= rate
        return ""

    def pick(self, label: str, choices: Sequence[T]) -> T:
        return choices[int(self.number(label) * len(choices))]

    def shuffled(self, label: str, items: Sequence[T]) -> list[T]:
        return [
            item
            for _, _, item in sorted(
                (self.number(f"{label}\x1f{place}"), place, item) for place, item in enumerate(items)
            )
        ]


class Luck:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._attempts: Counter[str] = Counter()

    def draw(self, *content: str) -> Draw:
        """The next attempt at this content."""
        key = hashlib.sha256("\x1f".join(content).encode()).hexdigest()
        self._attempts[key] += 1
        return Draw(f"{self._seed}\x1f{key}\x1f{self._attempts[key]}")

    def constant(self, *content: str) -> Draw:
        """The same in every attempt: for how a text is composed."""
        return Draw("\x1f".join((str(self._seed), *content)))

    def forget(self) -> None:
        self._attempts.clear()

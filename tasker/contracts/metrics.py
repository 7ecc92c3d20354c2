"""Numbers that a plugin keeps, and `/metrics` of its process tells: counters, gauges, histograms.

One thread at a time may change a metric, as the one in which a plugin hears; any other may read it meanwhile. A metric
holds at most `MOST_SERIES` combinations of labels; what would be one more is counted under `other`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import ClassVar

MOST_SERIES = 1000
OTHER = "other"
NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
Labels = tuple[str, ...]


class Metric(ABC):
    """What all metrics have. `labels` are the names of its labels; each value is given with all of them."""

    kind: ClassVar[str]

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = ()) -> None:
        """Raises `ValueError` for a name or a label that is not of the form a_b1."""
        if wrong := [each for each in (name, *labels) if not NAME.fullmatch(each)]:
            raise ValueError(f"{wrong[0]!r} is no name of a metric or label: small letters, digits and '_'")
        self.name, self.meaning, self.labels = name, meaning, tuple(labels)

    @abstractmethod
    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """(ending of the name, labels, value) of now."""

    def _key(self, given: Mapping[str, str], known: Mapping[Labels, object]) -> Labels:
        """Raises `ValueError` for other labels than the metric has."""
        if given.keys() != {*self.labels}:
            raise ValueError(f"{self.name} has the labels ({', '.join(self.labels)}), not ({', '.join(given)})")
        key = tuple(str(given[label]) for label in self.labels)
        return key if key in known or len(known) < MOST_SERIES else (OTHER,) * len(self.labels)

    def _labelled(self, key: Labels) -> dict[str, str]:
        return dict(zip(self.labels, key, strict=True))


class _Single(Metric):
    def __init__(self, name: str, meaning: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, meaning, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """One for each combination of labels."""
        return (("", self._labelled(key), value) for key, value in list(self._values.items()))


class Counter(_Single):
    """A number that only grows."""

    kind = "counter"

    def add(self, amount: float = 1, /, **labels: str) -> None:
        """Count. Raises `ValueError` for a negative amount and for other labels than it has."""
        if amount < 0:
            raise ValueError(f"{self.name} cannot count backwards")
        key = self._key(labels, self._values)
        self._values[key] = self._values.get(key, 0.0) + amount


class Gauge(_Single):
    """A number that goes up and down."""

    kind = "gauge"

    def set(self, value: float, /, **labels: str) -> None:
        """From here on it is this. Raises `ValueError` for other labels than it has."""
        self._values[self._key(labels, self._values)] = value


class Histogram(Metric):
    """How often values were how large: `bounds` are the upper ends of the buckets, rising; the last one has no end."""

    kind = "histogram"

    def __init__(self, name: str, meaning: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        """Raises `ValueError` for bounds that do not rise, too."""
        super().__init__(name, meaning, labels)
        if not bounds or sorted(set(bounds)) != list(bounds):
            raise ValueError(f"the bounds of {name} must rise, and there must be one")
        self.bounds = tuple(bounds)
        self._found: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, value: float, times: int = 1, /, **labels: str) -> None:
        """A value was seen so many times. Raises `ValueError` for other labels than it has."""
        key = self._key(labels, self._found)
        counts, total = self._found.setdefault(key, ([0] * (len(self.bounds) + 1), [0.0]))
        counts[bisect_left(self.bounds, value)] += times
        total[0] += value * times

    def counted(self, **labels: str) -> tuple[list[int], float]:
        """How many values are in each bucket, and their sum. Raises `ValueError` for other labels than it has."""
        counts, total = self._found.get(self._key(labels, self._found), ([0] * (len(self.bounds) + 1), [0.0]))
        return list(counts), total[0]

    def set(self, counts: Sequence[int], total: float, /, **labels: str) -> None:
        """From here on it is this, counted elsewhere: so many in each bucket, and the sum of their values.

        Raises `ValueError` for other labels than it has, and unless there is a number for each bucket.
        """
        if len(counts) != len(self.bounds) + 1:
            raise ValueError(f"{self.name} has {len(self.bounds) + 1} buckets, not {len(counts)}")
        self._found[self._key(labels, self._found)] = (list(counts), [total])

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Each bucket with all below it, the sum, and the number."""
        found = [(key, list(counts), total[0]) for key, (counts, total) in list(self._found.items())]
        for key, counts, total in found:
            labels = self._labelled(key)
            ends = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
            for end, count in zip(ends, accumulate(counts), strict=True):
                yield "_bucket", {**labels, "le": end}, count
            yield "_sum", labels, total
            yield "_count", labels, sum(counts)


def summed(first: Histogram, *others: Histogram, zeros: int = 0) -> Histogram:
    """What histograms of one name without labels have seen together, and so many values of 0 besides.

    What hardly ever takes any time is only counted where it happens, and told so.
    """
    found = [each.counted() for each in (first, *others)]
    counts = [sum(bucket) for bucket in zip(*(counts for counts, _ in found), strict=True)]
    made = Histogram(first.name, first.meaning, first.bounds)
    made.set([counts[0] + zeros, *counts[1:]], sum(total for _, total in found))
    return made

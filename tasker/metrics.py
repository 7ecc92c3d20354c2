"""Metrics of plugins, served at `/metrics` of the process: counters, gauges, histograms.

Only one thread at a time may change a metric, such as the one that calls a plugin; any other thread may read it
meanwhile. A metric has at most `MOST_SERIES` combinations of labels; further ones are counted under `other`.
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
    """Base class of all metrics. `labels` are the label names; every value must have all of them."""

    kind: ClassVar[str]

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = ()) -> None:
        """Initialize. Raises `ValueError` for a name or a label that is not of the form a_b1."""
        if wrong := [identifier for identifier in (name, *labels) if not NAME.fullmatch(identifier)]:
            raise ValueError(f"{wrong[0]!r} is not a valid metric or label name: use lowercase letters, digits and '_'")
        self.name, self.meaning, self.labels = name, meaning, tuple(labels)

    @abstractmethod
    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Yield (suffix of the name, labels, value) of the current state."""

    def _key(self, given: Mapping[str, str], known: Mapping[Labels, object]) -> Labels:
        """Return the key of these labels. Raises `ValueError` for other labels than the metric has."""
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
        return (("", self._labelled(key), value) for key, value in list(self._values.items()))


class Counter(_Single):
    """Number that only grows."""

    kind = "counter"

    def add(self, amount: float = 1, /, **labels: str) -> None:
        """Add to the counter. Raises `ValueError` for a negative amount and for unknown or missing labels."""
        if amount < 0:
            raise ValueError(f"{self.name} cannot count backwards")
        key = self._key(labels, self._values)
        self._values[key] = self._values.get(key, 0.0) + amount


class Gauge(_Single):
    """Number that goes up and down."""

    kind = "gauge"

    def set(self, value: float, /, **labels: str) -> None:
        """Set the value. Raises `ValueError` for unknown or missing labels."""
        self._values[self._key(labels, self._values)] = value


class Histogram(Metric):
    """Distribution of values: `bounds` are the upper ends of the buckets, ascending; the last bucket is unbounded."""

    kind = "histogram"

    def __init__(self, name: str, meaning: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        """Initialize. Raises `ValueError` for invalid names and for bounds that are empty or do not ascend."""
        super().__init__(name, meaning, labels)
        if not bounds or sorted(set(bounds)) != list(bounds):
            raise ValueError(f"the bounds of {name} must rise, and there must be one")
        self.bounds = tuple(bounds)
        self._found: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, value: float, times: int = 1, /, **labels: str) -> None:
        """Count a value `times` times. Raises `ValueError` for unknown or missing labels."""
        key = self._key(labels, self._found)
        counts, total = self._found.setdefault(key, ([0] * (len(self.bounds) + 1), [0.0]))
        counts[bisect_left(self.bounds, value)] += times
        total[0] += value * times

    def counted(self, **labels: str) -> tuple[list[int], float]:
        """Return the counts of the buckets and the sum of values. Raises `ValueError` for unknown or missing labels."""
        counts, total = self._found.get(self._key(labels, self._found), ([0] * (len(self.bounds) + 1), [0.0]))
        return list(counts), total[0]

    def set(self, counts: Sequence[int], total: float, /, **labels: str) -> None:
        """Replace the counts of the buckets and the sum of the values with numbers counted elsewhere.

        Raises `ValueError` for unknown or missing labels, and unless there is one count for each bucket.
        """
        if len(counts) != len(self.bounds) + 1:
            raise ValueError(f"{self.name} has {len(self.bounds) + 1} buckets, not {len(counts)}")
        self._found[self._key(labels, self._found)] = (list(counts), [total])

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Yield each bucket cumulatively, then the sum and the count."""
        snapshot = [(key, list(counts), total[0]) for key, (counts, total) in list(self._found.items())]
        for key, counts, total in snapshot:
            labels = self._labelled(key)
            ends = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
            for end, count in zip(ends, accumulate(counts), strict=True):
                yield "_bucket", {**labels, "le": end}, count
            yield "_sum", labels, total
            yield "_count", labels, sum(counts)


def summed(first: Histogram, *others: Histogram, zeros: int = 0) -> Histogram:
    """Return the sum of histograms of one name without labels, plus `zeros` values of 0.

    Operations that rarely take any time are only counted where they happen and are added as zeros.
    """
    tallies = [histogram.counted() for histogram in (first, *others)]
    counts = [sum(bucket) for bucket in zip(*(counts for counts, _ in tallies), strict=True)]
    made = Histogram(first.name, first.meaning, first.bounds)
    made.set([counts[0] + zeros, *counts[1:]], sum(total for _, total in tallies))
    return made

"""Metrics under a second name: computed from their source when they are read, and never counted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tasker.metrics import Labels, Metric
from tasker_prometheus.other_names import Same


class SameAs(Metric):
    """The values of another metric of this plugin, summed over the labels that this one does not have.

    A counter takes the number of values of a histogram. A histogram whose name ends in `_seconds` has the values in
    seconds of a source in milliseconds.
    """

    def __init__(self, row: Same, source: Metric) -> None:
        super().__init__(row.name, row.meaning, row.labels)
        self.kind = row.kind  # type: ignore[misc]  # of the class in all others
        self._source, self._chosen = source, dict(row.chosen)
        self._unit = 1000.0 if row.name.endswith("_seconds") else 1.0
        self._endings = {"_count": ""} if row.kind == "counter" and source.kind == "histogram" else None

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Yield the samples of the source, summed."""
        totals: Counter[tuple[str, Labels, str | None]] = Counter()
        if not self.labels and self.kind == "counter":
            totals["", (), None] = 0
        for ending, labels, value in self._source.samples():
            if self._chosen.items() <= labels.items() and (self._endings is None or ending in self._endings):
                key = tuple(labels[name] for name in self.labels)
                totals[self._ending(ending), key, labels.get("le")] += value  # type: ignore[assignment]
        for (ending, key, le), value in totals.items():
            yield ending, self._labelled(key) | self._end(le), value / (self._unit if ending == "_sum" else 1)

    def _ending(self, ending: str) -> str:
        return ending if self._endings is None else self._endings[ending]

    def _end(self, le: str | None) -> dict[str, str]:
        return {} if le is None else {"le": le if le == "+Inf" else f"{float(le) / self._unit:g}"}

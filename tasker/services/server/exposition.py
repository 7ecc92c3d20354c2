"""Prometheus text format: names, descriptions, and values with labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from tasker.contracts.metrics import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Described(NamedTuple):
    """Metric of Tasker: kind (`gauge`, `counter` or `histogram`), description, and names of its labels."""

    kind: str
    meaning: str
    labels: tuple[str, ...] = ()


Catalogue = Mapping[str, Described]
"""Descriptions of metrics by name."""


class Sample(NamedTuple):
    """One value. All samples of a name are consecutive in the text."""

    name: str
    value: float
    labels: Mapping[str, str] = {}


def exposition(catalogue: Catalogue, samples: Iterable[Sample]) -> str:
    """Return the samples as text, sorted by name. Raises `KeyError` for a name that is not in the catalogue."""
    by_name = groupby(sorted(samples, key=lambda sample: sample.name), key=lambda sample: sample.name)
    return "".join(line + "\n" for name, group in by_name for line in _family(name, catalogue[name], group))


def families(metrics: Iterable[Metric]) -> str:
    """Return metrics that hold their own values, such as those of plugins, as text."""
    return "".join(line + "\n" for metric in metrics for line in _kept(metric))


def _kept(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.meaning}".replace("\n", " ")
    yield f"# TYPE {metric.name} {metric.kind}"
    yield from (_line(metric.name + ending, labels, value) for ending, labels, value in metric.samples())


def _family(name: str, described: Described, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {described.meaning}"
    yield f"# TYPE {name} {described.kind}"
    for sample in samples:
        yield _line(name, sample.labels, sample.value)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{told}}} {value:.17g}" if told else f"{name} {value:.17g}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

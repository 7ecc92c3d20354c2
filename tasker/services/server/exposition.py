"""The text in which Prometheus reads numbers: names, what they mean, and values with labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from tasker.contracts.metrics import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Described(NamedTuple):
    """A metric of Tasker's own: its kind (`gauge` or `counter`), what it means, and the names of its labels."""

    kind: str
    meaning: str
    labels: tuple[str, ...] = ()


Catalogue = Mapping[str, Described]
"""What each metric is, by name."""


class Sample(NamedTuple):
    """One value. All samples of a name stand together in the text."""

    name: str
    value: float
    labels: Mapping[str, str] = {}


def exposition(catalogue: Catalogue, samples: Iterable[Sample]) -> str:
    """The samples as text, by name. Raises `KeyError` for a name that the catalogue does not have."""
    by_name = groupby(sorted(samples, key=lambda sample: sample.name), key=lambda sample: sample.name)
    return "".join(line + "\n" for name, group in by_name for line in _family(name, catalogue[name], group))


def families(metrics: Iterable[Metric]) -> str:
    """The metrics that plugins keep, as text."""
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

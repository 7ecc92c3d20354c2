"""Figures for people and for programs."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tests.benchmarks.conditions import Figure

CPU = ("py us/step", "pg us/step")


def as_json(figures: Sequence[Figure]) -> str:
    """All figures with everything that is known of them, and the machine."""
    machine = {"python": platform.python_version(), "system": platform.platform()}
    return json.dumps({"figures": [asdict(figure) for figure in figures], "machine": machine}, indent=2)


def table(figures: Sequence[Figure]) -> str:
    """The figures as tables."""
    parts = (_latency, _single, _telemetry, _scaling, _recovery)
    return "\n".join(line for part in parts for line in part(figures))


def _latency(figures: Sequence[Figure]) -> Iterator[str]:
    rows = [figure for figure in figures if figure.unit == "ms"]
    if rows:
        yield _line("latency, ms", ["p50", "p95", "p99", "min", "runs", *CPU])
    for row in rows:
        numbers = [row.value, *(row.more[key] for key in ("p95", "p99", "min"))]
        yield _line(row.name, [*(f"{number:.2f}" for number in numbers), str(row.more["runs"]), *_cpu(row)])


def _cpu(row: Figure) -> list[str]:
    """CPU for each step; nothing where it was not seen."""
    found = [row.more.get(f"{kind}_us", 0) for kind in ("python", "postgresql")]
    return [f"{each:,.0f}" if each else "" for each in found]


def _single(figures: Sequence[Figure]) -> Iterator[str]:
    rows = [figure for figure in figures if not figure.group and figure.unit != "ms"]
    if rows:
        yield _line("one figure", ["", "", "tasks", "seconds", "cpu s", *CPU])
    for row in rows:
        seconds = [f"{row.more[key]:.2f}" if key in row.more else "" for key in ("seconds", "cpu")]
        cells = [f"{row.value:,.2f}", row.unit, str(row.more.get("tasks", "")), *seconds, *_cpu(row)]
        yield _line(row.name, cells)


def _telemetry(figures: Sequence[Figure]) -> Iterator[str]:
    rows = [figure for figure in figures if figure.group == "telemetry"]
    if rows:
        yield _line("plugins", ["steps/s", "ratio", "from", "to", "cpu ratio", *CPU])
    for row in rows:
        rates = row.more["rates"]
        ratios = [f"{each:.2f}" for each in (row.ratio, min(rates), max(rates), row.more["cpu_ratio"])]
        yield _line(row.name, [f"{row.value:,.0f}", *ratios, *_cpu(row)])


def _scaling(figures: Sequence[Figure]) -> Iterator[str]:
    rows = [figure for figure in figures if figure.group == "scaling"]
    if rows:
        parts = ["workers", "orch.", "postgresql", "broker"]
        yield _line("worker processes", ["steps/s", "ratio", "from", "to", *parts, *CPU])
    for row in rows:
        rates, cpu = row.more["rates"], row.more["cpu"]
        used = [f"{cpu.get(name, 0):.2f}" for name in ("workers", "orchestrators", "postgresql", "broker")]
        numbers = [row.value, min(rates), max(rates)]
        rate, low, high = (f"{number:,.0f}" for number in numbers)
        yield _line(row.name, [rate, f"{row.ratio:.2f}", low, high, *used, *_cpu(row)])


def _recovery(figures: Sequence[Figure]) -> Iterator[str]:
    rows = [figure for figure in figures if figure.group == "recovery"]
    if rows:
        yield _line("killed, s until it moves", ["first", "median", "last", "steps", "runs"])
    for row in rows:
        times = [row.more["first"], row.more["median"], row.value]
        yield _line(row.name, [*(f"{seconds:.2f}" for seconds in times), str(row.more["steps"]), str(row.more["runs"])])


def _line(name: str, cells: Sequence[Any]) -> str:
    return f"{name:<30}" + "".join(f"{cell:>11}" for cell in cells)

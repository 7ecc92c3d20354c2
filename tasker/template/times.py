"""Kinds of value that say when a step begins, and on what it waits: times, durations, places in the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from tasker.dataclasses import dataclass
from tasker.expressions.path import EXPECTED as PLACE_EXPECTED
from tasker.expressions.path import DataPath, PathError, parse_path
from tasker.template.documents import DocumentReading, Path
from tasker.template.durations import DURATION, EXPECTED, parse_duration
from tasker.template.value_kinds import INVALID
from tasker.template.yaml.nodes import Node

TIME = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?([Zz]|[+-]\d\d:\d\d)"
TIME_EXPECTED = "expected a time with a zone such as 2026-01-31T18:00:00Z, or the path of one such as input.starts_at"


RATE = re.compile(r"(\d{1,7}(?:\.\d{1,6})?)/([smhd])")
UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MOST_PER_UNIT = 1_000_000
BURST_SECONDS = 0.25
"""A rate makes up for pauses of the fleet up to this time, unless its template says how many attempts."""
RATE_EXPECTED = "expected a rate such as 100/s, 30/m, 500/h or 1000/d"


@dataclass(frozen=True)
class Duration:
    """Duration with units, as seconds."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the duration; a number without a unit is reported with the likely meaning."""
        value = node.value
        try:
            if isinstance(value, str):
                return parse_duration(value)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            meant = f"did you mean {node.text}s?" if number else None
            reading.report.add("T060", f"expected {EXPECTED}, got {node.text or 'another value'}", node.location, meant)
        except ValueError as error:
            reading.report.add("T060", str(error), node.location)
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^(?=.){DURATION}$", "examples": ["5m"]}


@dataclass(frozen=True)
class StartTime:
    """Time, as `{time}`, or path of a time in a task's data: `{input}` or `{step, path}`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the time or the path."""
        value = node.value
        if not isinstance(value, str):
            reading.report.add("T061", f"{TIME_EXPECTED}, got {node.text or 'another value'}", node.location)
            return INVALID
        if value[:1].isdigit():
            return _time(value, node, reading)
        return _place("T061", value, node, reading)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": rf"^({TIME}|(input|steps)[.\[].+)$", "examples": ["input.starts_at"]}


@dataclass(frozen=True)
class Rate:
    """Number of attempts in a second, minute, hour or day, as attempts per second."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the rate; a number without a unit is reported with the likely meaning."""
        rate = parse_rate(node.value) if isinstance(node.value, str) else None
        if rate is None:
            meant = f"did you mean {node.text}/s?" if isinstance(node.value, int | float) else None
            reading.report.add("T118", f"{RATE_EXPECTED}, got {node.text or 'another value'}", node.location, meant)
            return INVALID
        return rate

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{RATE.pattern}$", "examples": ["100/s"]}


def parse_rate(text: str) -> float | None:
    """Parse a rate such as `100/m` into attempts per second; return None for any other text."""
    match = RATE.fullmatch(text)
    if match is None or not 0 < float(match[1]) <= MOST_PER_UNIT:
        return None
    return float(match[1]) / UNITS[match[2]]


def default_burst(rate: float) -> float:
    """Return the burst of a rate for which none is given."""
    return 1 + rate * BURST_SECONDS


def rate_text(rate: float) -> str:
    """Return a rate, in attempts per second, as it is written in a template."""
    rate = float(rate)  # JSON has whole numbers, too
    unit = next(unit for unit, seconds in UNITS.items() if rate * seconds >= 1 or unit == "d")
    for unit, seconds in UNITS.items():
        if (number := round(rate * seconds, 9)) >= 1 and number.is_integer() and int(number) / seconds == rate:
            return f"{int(number)}/{unit}"
    return f"{rate * UNITS[unit]!r}/{unit}"


@dataclass(frozen=True)
class DataPlace:
    """Place of a value in a task's data: `{input}` or `{step, path}`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the path."""
        if not isinstance(node.value, str):
            reading.report.add("T116", f"{PLACE_EXPECTED}, got {node.text or 'another value'}", node.location)
            return INVALID
        return _place("T116", node.value, node, reading)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^(input|steps)[.\[].+$", "examples": ["input.customer.id"]}


@dataclass(frozen=True)
class InputPlace(DataPlace):
    """Place of a value in a task's input: `{input}`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the path."""
        place = super().read(node, path, reading)
        if place is not INVALID and "input" not in place:
            hint = "a task waits before its first step: write input.NAME"
            reading.report.add("T116", "expected a place in the input, got one in a result", node.location, hint)
            return INVALID
        return place

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^input[.\[].+$", "examples": ["input.customer.id"]}


def start_text(start: Mapping[str, Any]) -> str:
    """Return the start of a step as it is written in a template."""
    return str(start["time"]) if "time" in start else place_text(start)


def place_text(place: Mapping[str, Any]) -> str:
    """Return a place in a task's data as it is written in a template."""
    return str(DataPath(place.get("step"), tuple(place["input"] if "input" in place else place["path"])))


def _place(code: str, text: str, node: Node, reading: DocumentReading) -> Any:
    try:
        found = parse_path(text)
    except PathError as error:
        reading.report.add(code, str(error), node.location)
        return INVALID
    if found.step is None:
        return {"input": list(found.parts)}
    return {"step": found.step, "path": list(found.parts)}


def _time(text: str, node: Node, reading: DocumentReading) -> Any:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        reading.report.add("T061", f"{TIME_EXPECTED}, got {text[:40]!r}", node.location)
        return INVALID
    if moment.utcoffset() is None:
        hint = f"add the zone: {text}Z for UTC" if "T" in text else None
        reading.report.add("T061", f"{TIME_EXPECTED}; {text[:40]!r} has no zone", node.location, hint)
        return INVALID
    return {"time": moment.isoformat()}

"""Kinds of value that say when a step begins, and on what it waits: times, durations, places in the data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.expressions.path import EXPECTED as PLACE_EXPECTED
from tasker.expressions.path import PathError, parse_path
from tasker.template.documents import DocumentReading, Path
from tasker.template.durations import DURATION, EXPECTED, parse_duration
from tasker.template.rates import RATE, RATE_EXPECTED, parse_rate
from tasker.template.value_kinds import INVALID
from tasker.template.yaml.nodes import Node

TIME = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?([Zz]|[+-]\d\d:\d\d)"
TIME_EXPECTED = "expected a time with a zone such as 2026-01-31T18:00:00Z, or the path of one such as input.starts_at"


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

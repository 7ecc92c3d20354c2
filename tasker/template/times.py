"""Kinds of value that say when a step begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.expressions.path import DataPath, PathError, parse_path
from tasker.template.documents import DocumentReading, Path
from tasker.template.durations import DURATION, EXPECTED, parse_duration
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
        try:
            parsed = parse_path(value)
        except PathError as error:
            reading.report.add("T061", str(error), node.location)
            return INVALID
        if parsed.step is None:
            return {"input": list(parsed.parts)}
        return {"step": parsed.step, "path": list(parsed.parts)}

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": rf"^({TIME}|(input|steps)[.\[].+)$", "examples": ["input.starts_at"]}


def start_text(start: Mapping[str, Any]) -> str:
    """Return the start of a step as it is written in a template."""
    if "time" in start:
        return str(start["time"])
    return str(DataPath(start.get("step"), tuple(start["input"] if "input" in start else start["path"])))


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

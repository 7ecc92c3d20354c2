"""Problems of a configuration and their presentation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.settings.catalogue import by_path
from tasker.settings.redaction import REDACTED, is_secret


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """Problem of a setting: its path, the value, the issue and the fix. `place` is `FILE:LINE` or another source."""

    path: str
    value: Any
    issue: str
    fix: str
    place: str | None = None

    def __str__(self) -> str:
        value = show_value(self.path, self.value) + (f"  ({self.place})" if self.place else "")
        return f"Validation Error: {self.path}\nValue: {value}\nIssue: {self.issue}\nFix: {self.fix}"

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain data, with the value as displayed."""
        value = show_value(self.path, self.value)
        return {"path": self.path, "value": value, "issue": self.issue, "fix": self.fix, "place": self.place}


def render(problems: Iterable[SettingProblem]) -> str:
    """Join the problems with empty lines."""
    return "\n\n".join(map(str, problems))


def show_value(path: str, value: Any) -> str:
    """Format a value as TOML, with secrets redacted.

    A value that does not belong to a parameter is shown only as its kind, since an unknown key or a misplaced table may
    contain a secret.
    """
    if path.partition("[")[0] not in by_path() or _holds_tables(value):
        return kind_of(value)
    if is_secret(path.rpartition(".")[2], value):
        return REDACTED
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:197]}..."


def kind_of(value: Any) -> str:
    """Return the kind of TOML value in words."""
    return next((words for kind, words in _KINDS if isinstance(value, kind)), "a value")


def _holds_tables(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, (list, tuple)) and any(map(_holds_tables, value)))


_KINDS: tuple[tuple[type, str], ...] = (
    (Mapping, "a table"),
    (str, "a text"),
    (bool, "a switch"),
    (int, "a whole number"),
    (float, "a number"),
    (list, "a list"),
    (tuple, "a list"),
    (date, "a date"),
    (time, "a time"),
)

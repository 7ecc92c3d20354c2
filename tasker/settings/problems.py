"""One thing that is wrong with a configuration, and how it is said."""

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
    """Where, what was found, what is wrong with it, what to do. `place` is `FILE:LINE` or what else set the value."""

    path: str
    value: Any
    issue: str
    fix: str
    place: str | None = None

    def __str__(self) -> str:
        value = show_value(self.path, self.value) + (f"  ({self.place})" if self.place else "")
        return f"Validation Error: {self.path}\nValue: {value}\nIssue: {self.issue}\nFix: {self.fix}"

    def to_dict(self) -> dict[str, Any]:
        """The problem as plain data, its value as shown."""
        value = show_value(self.path, self.value)
        return {"path": self.path, "value": value, "issue": self.issue, "fix": self.fix, "place": self.place}


def render(problems: Iterable[SettingProblem]) -> str:
    """All of them, an empty line between two."""
    return "\n\n".join(map(str, problems))


def show_value(path: str, value: Any) -> str:
    """A value as it stands in TOML. Secrets are hidden.

    What is no parameter's value is only named by its kind: nobody knows what an unknown key, or a table in the wrong
    place, holds.
    """
    if path.partition("[")[0] not in by_path() or _holds_tables(value):
        return kind_of(value)
    if is_secret(path.rpartition(".")[2], value):
        return REDACTED
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:197]}..."


def kind_of(value: Any) -> str:
    """What kind of TOML value it is, in words."""
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

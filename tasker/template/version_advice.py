"""Version that a changed template should have, by semantic versioning."""

from __future__ import annotations

import re

from tasker.dataclasses import dataclass
from tasker.template.diff import Comparison, Level

SEMANTIC = re.compile(r"(\d+)\.(\d+)\.(\d+)(?![\d.])")
ADDITIONS = ("step_added", "event_added", "template_added")


@dataclass(frozen=True, slots=True)
class VersionAdvice:
    """Part of the version to raise (`major`, `minor`, `patch`), the lowest such version, and whether it is reached."""

    part: str
    advised: str | None
    """None if the old version is not of the form `1.2.3`."""
    enough: bool


def version_advice(comparison: Comparison) -> VersionAdvice | None:
    """Return which version the changes ask for; None without changes, or for a template that is new or gone.

    A version `0.x` promises nothing: there a breaking change raises the second number.
    """
    if comparison.before is None or comparison.after is None or not comparison.changes:
        return None
    added = any(change.code in ADDITIONS for change in comparison.changes)
    part = "minor" if comparison.level is Level.WARNING or added else "patch"
    if comparison.level is Level.BREAKING:
        part = "major"
    old, new = comparison.before.plan.version, comparison.after.plan.version
    if (match := SEMANTIC.match(old)) is None:
        return VersionAdvice(part, None, old != new)
    major, minor, patch = map(int, match.groups())
    raised = {"major": (major + 1, 0, 0), "minor": (major, minor + 1, 0), "patch": (major, minor, patch + 1)}
    least = raised["minor" if part == "major" and major == 0 else part]
    written = SEMANTIC.match(new)
    enough = written is not None and tuple(map(int, written.groups())) >= least
    return VersionAdvice(part, ".".join(map(str, least)), enough)

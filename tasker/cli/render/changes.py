"""Changes of templates as text and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from tasker.template.diff import Change, Comparison, Level, Reader, Version
from tasker.template.version_advice import version_advice

TITLES = {
    Reader.RUNNING: "running tasks",
    Reader.CALLERS: "callers",
    Reader.HANDLERS: "handlers",
    Reader.NEW_TASKS: "new tasks",
}
PINNED = "tasks that run keep the version they started with"


def comparisons_text(comparisons: Sequence[Comparison]) -> str:
    """Return one paragraph per template with changes, and a summary."""
    parts = [_paragraph(comparison) for comparison in comparisons if comparison.changes]
    return "\n\n".join([*parts, _summary(comparisons)])


def comparisons_data(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return the comparisons as plain data."""
    levels = [comparison.level for comparison in comparisons]
    return {
        "compatible": Level.BREAKING not in levels,
        "templates": [comparison_data(comparison) for comparison in comparisons],
    }


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return one comparison as plain data."""
    advice = version_advice(comparison)
    return {
        "before": _version(comparison.before),
        "after": _version(comparison.after),
        "compatible": comparison.level is not Level.BREAKING,
        "findings": [change.to_dict() for change in comparison.changes],
        "version": None if advice is None else {"raise": advice.part, "least": advice.advised, "enough": advice.enough},
    }


def change_lines(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the changes by reader, each with its places."""
    order = list(Reader)
    by_reader = sorted(changes, key=lambda change: order.index(change.reader))
    for reader, some in groupby(by_reader, key=lambda change: change.reader):
        yield f"  {TITLES[reader]}"
        for change in some:
            places = list(dict.fromkeys(place for place in (change.before, change.after) if place))
            yield f"    {change.level}: {change.path or 'the template'}: {change.message}"
            if places:
                yield f"      {' -> '.join(places)}"


def advice_line(comparison: Comparison) -> str | None:
    """Return which version the new template should have; None if it is high enough."""
    advice = version_advice(comparison)
    if advice is None or comparison.before is None or comparison.after is None:
        return None
    old, new = comparison.before.plan.version, comparison.after.plan.version
    if advice.enough and old != new:
        return None
    least = f"at least {advice.advised}" if advice.advised else "another one"
    reason = "the content differs and the version is the same" if old == new else f"the version is {new}"
    return f"  version: {reason}; these changes ask for {least} ({advice.part})"


def _paragraph(comparison: Comparison) -> str:
    lines = [_title(comparison), *change_lines(comparison.changes)]
    if comparison.before is not None and comparison.after is not None:
        lines.insert(1, f"  {PINNED}")
    if line := advice_line(comparison):
        lines.append(line)
    return "\n".join(lines)


def _title(comparison: Comparison) -> str:
    before, after = comparison.before, comparison.after
    if before is None or after is None:
        known = after or before
        return "" if known is None else f"{named(known)}: {'new' if before is None else 'gone'}"
    return f"{named(before)} -> {named(after)}"


def named(version: Version) -> str:
    """Return `namespace/name:version`."""
    return str(version.plan.id)


def _version(version: Version | None) -> dict[str, Any] | None:
    if version is None:
        return None
    plan, file = version.plan, None if version.places is None else version.places.file
    return {"namespace": plan.namespace, "name": plan.name, "version": plan.version, "file": file}


def _summary(comparisons: Sequence[Comparison]) -> str:
    changes = [change for comparison in comparisons for change in comparison.changes]
    if not changes:
        return "no changes"
    counts = [(level, sum(change.level is level for change in changes)) for level in Level]
    words = {Level.BREAKING: "breaking", Level.WARNING: "warning", Level.INFO: "for new tasks only"}
    return ", ".join(f"{number} {words[level]}" for level, number in counts if number)

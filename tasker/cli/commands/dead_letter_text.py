"""Text output of dead letters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.render.task import short_ids
from tasker.cli.render.values import date_time, table
from tasker.services.wording import one_line

if TYPE_CHECKING:
    from tasker.views.dead_letters import DeadLetter, FailureGroup, QueuedInvestigation, ReasonStats, TaskHealth


def list_text(entries: Sequence[DeadLetter], width: int | None = None) -> str:
    """Render entries, one per line."""
    if not entries:
        return "no dead letters"
    headings = ("ENTRY", "TASK", "TEMPLATE", "REASON", "STATUS", "SINCE", "TASK IS NOW")
    return _table(headings, [(*_names(entry), *_standing(entry)) for entry in entries], width, ("ENTRY", "SINCE"))


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, spared: Sequence[str]) -> str:
    """Render the table in full if it fits in `width` columns, or if `width` is None.

    Otherwise omit the columns in `spared` and shorten the task identifiers; commands accept their prefixes.
    """
    whole = table(headings, rows)
    if width is None or max(len(line) for line in click.unstyle(whole).splitlines()) <= width:
        return whole
    tasks = short_ids([row[headings.index("TASK")] for row in rows])
    short = [dict(zip(headings, row, strict=True), TASK=task) for row, task in zip(rows, tasks, strict=True)]
    columns = [name for name in headings if name not in spared]
    return table(columns, [[row[name] for name in columns] for row in short])


def _names(entry: DeadLetter) -> tuple[str, str, str]:
    snapshot = entry.task_snapshot or {}
    return entry.dlq_entry_uuid, entry.task_uuid, f"{snapshot.get('namespace', '?')}/{snapshot.get('task_name', '?')}"


def _standing(entry: DeadLetter) -> tuple[str, str, str, str]:
    return entry.dlq_reason, entry.resolution_status, date_time(entry.dlq_timestamp), entry.current_state or "deleted"


def entry_text(entry: DeadLetter) -> str:
    """Render all details of an entry."""
    return "\n".join([changed_text(entry), *_objects(snapshot=entry.task_snapshot)])


def changed_text(entry: DeadLetter) -> str:
    """Render the state of an entry, without the snapshot of the task."""
    lines = [
        f"entry {entry.dlq_entry_uuid}: {entry.dlq_reason}, {entry.resolution_status}",
        f"task {entry.task_uuid}, was {entry.original_state}, now {entry.current_state or 'deleted'}",
        f"since {date_time(entry.dlq_timestamp)}",
    ]
    if entry.resolved_at:
        lines.append(f"closed {date_time(entry.resolved_at)} by {entry.resolved_by or 'unknown'}")
    if entry.resolution_notes:
        lines.append(f"notes: {entry.resolution_notes}")
    if entry.fingerprints:
        lines.append(f"fingerprints: {', '.join(entry.fingerprints)}")
    return "\n".join([*lines, *_objects(metadata=entry.metadata)])


def _objects(**named: Any) -> list[str]:
    return [
        f"{name}: {json.dumps(value, indent=2, ensure_ascii=False, default=str)}"
        for name, value in named.items()
        if value
    ]


def stats_text(reasons: Sequence[ReasonStats]) -> str:
    """Render the counts, one line per reason."""
    if not reasons:
        return "no dead letters"
    headings = (
        "REASON",
        "ENTRIES",
        "PENDING",
        "RESOLVED",
        "FAILED FOR GOOD",
        "CANCELLED",
        "OLDEST",
        "MINUTES TO CLOSE",
    )
    return table(headings, [_stats_row(stats) for stats in reasons])


def _stats_row(stats: ReasonStats) -> tuple[str, ...]:
    minutes = stats.avg_resolution_time_minutes
    counts = (stats.total_entries, stats.pending, stats.manually_resolved, stats.permanent_failures, stats.cancelled)
    closing = "-" if minutes is None else f"{minutes:.1f}"
    return stats.dlq_reason, *map(str, counts), date_time(stats.oldest_entry), closing


def queue_text(investigations: Sequence[QueuedInvestigation], width: int | None = None) -> str:
    """Render pending entries, one per line."""
    if not investigations:
        return "no pending entries"
    rows = [
        (
            f"{investigation.priority_score:.1f}",
            investigation.dlq_entry_uuid,
            investigation.task_uuid,
            f"{investigation.namespace_name}/{investigation.task_name}",
            investigation.dlq_reason,
            f"{investigation.minutes_in_dlq:.0f}",
            investigation.current_state or "deleted",
        )
        for investigation in investigations
    ]
    headings = ("SCORE", "ENTRY", "TASK", "TEMPLATE", "REASON", "MINUTES", "TASK IS NOW")
    return _table(headings, rows, width, ("ENTRY",))


def staleness_text(tasks: Sequence[TaskHealth]) -> str:
    """Render open tasks, one per line."""
    if not tasks:
        return "no open tasks"
    rows = [
        (
            task.health_status,
            task.task_uuid,
            f"{task.namespace_name}/{task.task_name}",
            task.current_state,
            f"{task.time_in_state_minutes}/{task.staleness_threshold_minutes}",
            str(task.task_age_minutes),
            task.excuse or "-",
        )
        for task in tasks
    ]
    return table(("HEALTH", "TASK", "TEMPLATE", "STATE", "MINUTES/LIMIT", "AGE", "EXCUSED"), rows)


def groups_text(groups: Sequence[FailureGroup]) -> str:
    """Render groups of failures, one per line."""
    if not groups:
        return "no pending entries with a failure"
    rows = [
        (
            group.fingerprint,
            str(group.entries),
            ", ".join(group.namespaces),
            group.step or "-",
            date_time(group.newest),
            one_line(f"{group.error_type}: {group.message}", 80),
        )
        for group in groups
    ]
    return table(("FINGERPRINT", "ENTRIES", "NAMESPACES", "STEP", "NEWEST", "FAILURE"), rows)

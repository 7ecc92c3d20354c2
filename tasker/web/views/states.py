"""Labels and symbols for states of tasks and steps, so that no information depends on colour alone."""

from __future__ import annotations

from tasker.services.wording import SYMBOLS

GROUPS = {
    "pending": "waits",
    "initializing": "waits",
    "enqueuing_steps": "runs",
    "enqueued": "waits",
    "in_progress": "runs",
    "steps_in_process": "runs",
    "evaluating_results": "runs",
    "enqueued_for_orchestration": "runs",
    "enqueued_as_error_for_orchestration": "retries",
    "waiting_for_dependencies": "waits",
    "waiting_for_retry": "retries",
    "blocked_by_failures": "failed",
    "complete": "done",
    "resolved_manually": "resolved",
    "error": "failed",
    "cancelled": "cancelled",
    "live": "done",
    "draining": "retries",
    "lost": "failed",
    "stopped": "cancelled",
    "paused": "paused",
    "open": "failed",
    "manually_resolved": "resolved",
    "permanently_failed": "failed",
    "stale": "failed",
    "warning": "retries",
    "healthy": "done",
    "running": "runs",
    "deleted": "cancelled",
}
"""Style class of each state; states that need the same attention share a class."""
LABELS = {
    "enqueued_for_orchestration": "result being stored",
    "enqueued_as_error_for_orchestration": "failure being stored",
    "in_progress": "running",
    "steps_in_process": "running",
    "evaluating_results": "running",
    "enqueuing_steps": "starting",
    "initializing": "starting",
    "error": "failed",
    "enqueued": "queued",
}
SHAPES = {
    "waiting_for_dependencies": "·",
    "blocked_by_failures": "✖",
    "initializing": "·",
    "live": "✔",
    "draining": "…",
    "lost": "✖",
    "stopped": "⊘",
    "paused": "‖",
    "open": "✖",
    "manually_resolved": "✔",
    "permanently_failed": "✖",
    "stale": "✖",
    "warning": "…",
    "healthy": "✔",
    "deleted": "⊘",
}


def group(state: str) -> str:
    """Return the style class: `done`, `runs`, `waits`, `retries`, `failed`, `cancelled`, `resolved` or `paused`."""
    return GROUPS.get(state, "waits")


def label(state: str) -> str:
    """Return the state in plain words."""
    return LABELS.get(state, state.replace("_", " "))


def shape(state: str) -> str:
    return SHAPES.get(state) or SYMBOLS.get(state, "▶")

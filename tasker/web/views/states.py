"""States of tasks and steps for people: words, and a shape beside the colour, so that nobody needs colours."""

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
"""The class of the style sheet for each state; alike in look is what asks for the same attention."""
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
    """What it asks of who looks: `done`, `runs`, `waits`, `retries`, `failed`, `cancelled`, `resolved`, `paused`."""
    return GROUPS.get(state, "waits")


def label(state: str) -> str:
    """The state in plain words."""
    return LABELS.get(state, state.replace("_", " "))


def shape(state: str) -> str:
    """Its symbol."""
    return SHAPES.get(state) or SYMBOLS.get(state, "▶")

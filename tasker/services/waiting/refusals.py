"""Errors of waits that end without the task's end."""

from __future__ import annotations

from tasker.errors import UsageError


def not_ended(task_uuid: str, timeout: float | None, state: str) -> TimeoutError:
    """Return the error for a wait of `timeout` seconds; `state` describes the task's state in words."""
    return TimeoutError(
        f"task {task_uuid} has not ended after {timeout:g} s and goes on: {state}. To keep waiting: "
        f"wait({task_uuid!r}), or in a shell: tasker task watch {task_uuid}"
    )


def stopped(task_uuid: str) -> UsageError:
    """Return the error for a wait that ends because the app was stopped: nothing would report the task's end."""
    return UsageError(
        f"the app was stopped while it waited for task {task_uuid}, which continues on other workers",
        hint="stop waiters before the app, or wait for the task again after a restart",
    )

"""What is told to who waits for a task in vain."""

from __future__ import annotations

from tasker.errors import UsageError


def not_ended(task_uuid: str, timeout: float | None, state: str) -> TimeoutError:
    """After `timeout` seconds; `state` is how the task stands, in words."""
    return TimeoutError(
        f"task {task_uuid} has not ended after {timeout:g} s and goes on: {state}. "
        f"To wait on: wait({task_uuid!r}), or in a shell: tasker task watch {task_uuid}"
    )


def stopped(task_uuid: str) -> UsageError:
    """The program lets go of its database, and nobody would ever tell of the end."""
    return UsageError(
        f"the app was stopped while it waited for task {task_uuid}, which goes on where a worker takes it",
        hint="end what waits before the app is stopped, or wait for the task again once one is started",
    )

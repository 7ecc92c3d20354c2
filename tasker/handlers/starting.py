"""Tasks that a handler starts through its context, without an `App` of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.handlers.claims import Claim


@dataclass(frozen=True, slots=True)
class StartedTask:
    """Task that a handler has started. `created` False: an earlier attempt, or an equal call, started it before."""

    task_uuid: str
    created: bool = True


class TaskStarter(Protocol):
    """Creator of the children of steps, in the worker. It raises the errors of `App.submit`."""

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this loop for handlers that run elsewhere."""
        ...

    def start(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Create a task and wait for it, in a thread or a child process of the worker."""
        ...

    async def start_async(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Create a task."""
        ...


class StartingTasks:
    """Part of `StepContext` that starts tasks."""

    if TYPE_CHECKING:
        _claim: Claim | None
        _starter: TaskStarter | None

    def submit(
        self, target: str, values: Mapping[str, Any] | None = None, *, key: str | None = None, **options: Any
    ) -> StartedTask:
        """Create a task of the registered template `namespace/name[:version]`, as a child of this step.

        The next attempt of the step gets the same task: it is identified by the step and by `key`, or else by its input
        `values`. `options` are those of `App.submit` (priority, delay, tags ...). In an async handler, use
        `submit_async`.

        Raises the errors of `App.submit`, `TaskTooDeep`, and `UsageError` outside of a worker.
        """
        starter, claim = self._starting()
        if _on_a_loop():
            raise UsageError(
                "context.submit: this would block an event loop",
                hint="in an async handler use `await context.submit_async(...)`",
            )
        return starter.start(claim, target, values, {"key": key, **options})

    async def submit_async(
        self, target: str, values: Mapping[str, Any] | None = None, *, key: str | None = None, **options: Any
    ) -> StartedTask:
        """Create a task as `submit` does, in an async handler."""
        starter, claim = self._starting()
        return await starter.start_async(claim, target, values, {"key": key, **options})

    def _starting(self) -> tuple[TaskStarter, Claim]:
        if self._starter is None or self._claim is None:
            raise UsageError(
                "context.submit: this context is not that of a worker",
                hint="in a test pass step_context(starter=...), with an object that records what the handler starts",
            )
        return self._starter, self._claim


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

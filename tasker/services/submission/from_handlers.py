"""Tasks that handlers start through their context: created by the worker, as children of the step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tasker.engine.plans import PlanStore
from tasker.errors import UsageError
from tasker.handlers.claims import Claim
from tasker.handlers.starting import StartedTask
from tasker.services.submission.parents import of_step
from tasker.services.workflows.targets import registered_name

if TYPE_CHECKING:
    from tasker.services.submission.submit import Submitter


class StepSubmissions:
    """Implementation of `TaskStarter` in a worker. `make` returns the submitter when the first task is started."""

    def __init__(self, make: Callable[[], Submitter], plans: PlanStore) -> None:
        self._make, self._plans = make, plans
        self._loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def _submitter(self) -> Submitter:
        return self._make()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this loop for handlers in threads; called when the worker starts."""
        self._loop = loop

    def start(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Create a task from a thread."""
        if self._loop is None:
            raise UsageError("context.submit: the worker has not been started")
        return asyncio.run_coroutine_threadsafe(self._start(claim, target, values, options), self._loop).result()

    async def start_async(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Create a task, from the worker's loop or from another one."""
        starting = self._start(claim, target, values, options)
        if self._loop is None or self._loop is _running_loop():
            return await starting
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(starting, self._loop))

    async def _start(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        from tasker.services.submission.submit import Submission  # needed for handlers that start tasks only

        try:
            request = Submission({} if values is None else values, **options)
        except TypeError as error:
            raise UsageError(f"context.submit: {error}", hint="its options are those of App.submit") from None
        plan = (await self._plans.find(*registered_name(target))).plan
        submitted = await self._submitter.submit(plan, of_step(request, claim), on_duplicate="return")
        return StartedTask(submitted.task_uuid, submitted.created)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

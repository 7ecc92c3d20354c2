"""Steps over HTTP: reading and manual changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.client.calls.operations import OperationCalls, decoded
from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection
from tasker.operations.steps import MOST_STEPS, StepOperations
from tasker.views.steps import Step

STEPS_PAGE = MOST_STEPS
"""Steps of one answer."""


class StepCalls(OperationCalls, StepOperations):
    """Calls on steps, which are identified by their UUIDs. All raise `TaskNotFound` and `StepNotFound`.

    Changes record `actor`, or else the client's `initiator`. They raise `StateMachineError` if the state of the step or
    its task does not allow them.
    """

    connection: HttpConnection
    initiator: str

    async def list_task_steps(self, task_uuid: str) -> list[Step]:
        """Return the task's steps in topological order, read page by page."""
        steps: list[Step] = []
        while True:
            page = await self.list_step_page(task_uuid, limit=STEPS_PAGE, offset=len(steps))
            steps += page
            if len(page) < STEPS_PAGE:
                return steps

    async def reset_step(self, task_uuid: str, step_uuid: str, *, reason: str = "", actor: str | None = None) -> Step:
        """Reset a step in `error` for another run with its full number of attempts."""
        body = {"action_type": "reset_for_retry", "reason": reason, "reset_by": actor or self.initiator}
        return await self._patch(task_uuid, step_uuid, body)

    async def resolve_step(self, task_uuid: str, step_uuid: str, *, reason: str = "", actor: str | None = None) -> Step:
        """Resolve a step without a result; the steps that depend on it can run."""
        body = {"action_type": "resolve_manually", "reason": reason, "resolved_by": actor or self.initiator}
        return await self._patch(task_uuid, step_uuid, body)

    async def complete_step(
        self,
        task_uuid: str,
        step_uuid: str,
        result: Mapping[str, Any],
        *,
        metadata: Mapping[str, Any] | None = None,
        reason: str = "",
        actor: str | None = None,
    ) -> Step:
        """Complete a step with this result; `metadata` is stored with it. Also raises `NotStorable`."""
        completion_data = {"result": result, "metadata": metadata}
        who = {"reason": reason, "completed_by": actor or self.initiator}
        body = {"action_type": "complete_manually", "completion_data": completion_data, **who}
        return await self._patch(task_uuid, step_uuid, body)

    async def _patch(self, task_uuid: str, step_uuid: str, body: Mapping[str, Any]) -> Step:
        return decoded(Step, await self.connection.send("PATCH", _steps(task_uuid, step_uuid), body=body))


def _steps(task_uuid: str, *parts: str) -> str:
    return path("/v1/tasks", task_uuid, "workflow_steps", *parts)

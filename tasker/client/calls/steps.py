"""Steps over HTTP: reading and manual changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection
from tasker.client.responses import StepAuditResponse, StepResponse

STEPS_PAGE = 1000
"""Steps of one answer."""


class StepCalls:
    """Calls on steps, which are identified by their UUIDs. All raise `TaskNotFound` and `StepNotFound`.

    Changes record `by`, or the client's `initiator`, as the actor. They raise `StateMachineError` if the state of the
    step or its task does not allow them.
    """

    connection: HttpConnection
    initiator: str

    async def list_task_steps(self, task_uuid: str) -> list[StepResponse]:
        """Return the task's steps in topological order."""
        return [StepResponse.from_dict(step) for step in await self.list_step_data(task_uuid)]

    async def list_step_data(self, task_uuid: str) -> list[dict[str, Any]]:
        """As `list_task_steps`, everything that the server says of them; read page by page."""
        steps: list[dict[str, Any]] = []
        while True:
            page = await self.connection.get(_steps(task_uuid), {"limit": STEPS_PAGE, "offset": len(steps)})
            steps += page
            if len(page) < STEPS_PAGE:
                return steps

    async def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse:
        """Return one step."""
        return StepResponse.from_dict(await self.get_step_data(task_uuid, step_uuid))

    async def get_step_data(self, task_uuid: str, step_uuid: str) -> dict[str, Any]:
        """Return one step as plain data with every field of the API."""
        return dict(await self.connection.get(_steps(task_uuid, step_uuid)))

    async def get_step_inputs(self, task_uuid: str, step_uuid: str) -> dict[str, Any]:
        """Return the input of a step's handler: `inputs` and `problems` by name, `evaluated`, `attempt`."""
        return dict(await self.connection.get(_steps(task_uuid, step_uuid, "inputs")))

    async def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]:
        """Return the audit records of the stored results of a step, newest first."""
        rows = await self.connection.get(_steps(task_uuid, step_uuid, "audit"))
        return [StepAuditResponse.from_dict(row) for row in rows]

    async def reset_step(
        self, task_uuid: str, step_uuid: str, *, reason: str = "", by: str | None = None
    ) -> StepResponse:
        """Reset a step in `error` for another run with its full number of attempts."""
        body = {"action_type": "reset_for_retry", "reason": reason, "reset_by": by or self.initiator}
        return await self._patch(task_uuid, step_uuid, body)

    async def resolve_step(
        self, task_uuid: str, step_uuid: str, *, reason: str = "", by: str | None = None
    ) -> StepResponse:
        """Resolve a step without a result; the steps that depend on it can run."""
        body = {"action_type": "resolve_manually", "reason": reason, "resolved_by": by or self.initiator}
        return await self._patch(task_uuid, step_uuid, body)

    async def complete_step(
        self,
        task_uuid: str,
        step_uuid: str,
        result: Mapping[str, Any],
        *,
        metadata: Mapping[str, Any] | None = None,
        reason: str = "",
        by: str | None = None,
    ) -> StepResponse:
        """Complete a step with this result; `metadata` is stored with it. Also raises `NotStorable`."""
        completion_data = {"result": result, "metadata": metadata}
        who = {"reason": reason, "completed_by": by or self.initiator}
        body = {"action_type": "complete_manually", "completion_data": completion_data, **who}
        return await self._patch(task_uuid, step_uuid, body)

    async def _patch(self, task_uuid: str, step_uuid: str, body: Mapping[str, Any]) -> StepResponse:
        return StepResponse.from_dict(await self.connection.send("PATCH", _steps(task_uuid, step_uuid), body=body))


def _steps(task_uuid: str, *parts: str) -> str:
    return path("/v1/tasks", task_uuid, "workflow_steps", *parts)

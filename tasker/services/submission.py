"""Submitting tasks: input checked, identity computed, one call for any number of tasks of a template."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasker.contracts.plan import Plan
from tasker.errors import DuplicateTask, InputInvalid
from tasker.lifecycle.identity import identity_hash
from tasker.lifecycle.storable import encode
from tasker.messaging.queues import check_namespace
from tasker.services.engine import Engine
from tasker.services.plans import PlanStore
from tasker.services.pressure import Admission
from tasker.template.schema_check import check_input

CONTEXT_LIMIT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One task to create. `priority`: higher runs sooner. `correlation_id` defaults to the task's own id."""

    context: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    idempotency_key: str | None = None
    correlation_id: str | None = None
    parent_correlation_id: str | None = None
    initiator: str = "unknown"
    source_system: str = "unknown"
    reason: str = ""
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Submitted:
    """A created task: its id, and how many steps it began with."""

    task_uuid: str
    step_count: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A task about to be created: its id, what makes it the same as another one, and itself as JSON text."""

    task_uuid: str
    identity: str
    text: str


class Drafts:
    """Requests checked and written down as the engine takes them.

    `new_id` gives fresh task identifiers (uuid text whose last 24 bits are zero), `window` is how many steps of a
    namespace may be enqueued.
    """

    def __init__(
        self,
        new_id: Callable[[], str],
        *,
        window: int = 2000,
        context_limit_bytes: int = CONTEXT_LIMIT_BYTES,
    ) -> None:
        self._new_id = new_id
        self._window = window
        self._limit = context_limit_bytes

    def draft(self, plan: Plan, request: Request, task_id: str | None = None) -> Draft:
        """One task that can be created, of a fresh identifier or of the one given.

        Raises `InputInvalid`, `NotStorable`, `IdentityError`; `InvalidQueueName` for a plan whose namespace can have no
        queue, so that no task waits for hints that cannot be sent (RT-47).
        """
        check_namespace(plan.namespace)
        _check_context(plan, request)
        task_id = task_id or self._new_id()
        context = encode(dict(request.context), limit_bytes=self._limit)
        identity = identity_hash(
            f"{plan.namespace}/{plan.name}/{plan.version}",
            plan.identity_strategy,
            request.context,
            request.idempotency_key,
            task_id,
        )
        rest = {
            "id": task_id,
            "identity": identity,
            "priority": request.priority,
            "correlation": request.correlation_id,
            "parent_correlation": request.parent_correlation_id,
            "initiator": request.initiator,
            "source_system": request.source_system,
            "reason": request.reason,
            "tags": list(request.tags),
        }
        return Draft(task_id, identity, f'{json.dumps(rest)[:-1]},"context":{context.text}}}')

    def args(self, template_id: int, drafts: Sequence[Draft]) -> str:
        """The arguments of `tasker.submit_v1` as JSON text."""
        tasks = ",".join(draft.text for draft in drafts)
        return f'{{"template":{template_id},"window":{self._window},"tasks":[{tasks}]}}'


class Submitter:
    """Creates tasks in a transaction of its own. Parameters as `Drafts`, which are kept as `drafts`.

    `admission` may refuse new work; without it everything is taken.
    """

    def __init__(
        self,
        engine: Engine,
        plans: PlanStore,
        new_id: Callable[[], str],
        *,
        window: int = 2000,
        context_limit_bytes: int = CONTEXT_LIMIT_BYTES,
        admission: Admission | None = None,
    ) -> None:
        self._engine = engine
        self._admission = admission
        self._plans = plans
        self.drafts = Drafts(new_id, window=window, context_limit_bytes=context_limit_bytes)

    async def submit(self, plan: Plan, request: Request, *, force: bool = False) -> Submitted:
        """Create one task. Raises `InputInvalid`, `NotStorable`, `DuplicateTask`, `TemplateError`, `Overloaded`."""
        result = (await self.submit_many(plan, [request], force=force))[0]
        if isinstance(result, DuplicateTask):
            raise result
        return result

    async def submit_many(
        self, plan: Plan, requests: Sequence[Request], *, force: bool = False
    ) -> list[Submitted | DuplicateTask]:
        """Create many tasks of one template in one transaction; the answers are in the order of the requests.

        A duplicate is answered with `DuplicateTask` and holds up nothing else; an invalid input raises before anything
        is created.
        """
        drafts = [self.drafts.draft(plan, request) for request in requests]
        if self._admission is not None:
            lowest = min((request.priority for request in requests), default=0)
            await self._admission.require(plan, len(drafts), priority=lowest)
        registered = await self._plans.register(plan, force=force)
        answer = await self._engine.call("submit", self.drafts.args(registered.template_id, drafts))
        created = set(answer["created"])
        return [submitted(draft, created, answer) for draft in drafts]


def submitted(draft: Draft, created: Container[str], answer: Mapping[str, Any]) -> Submitted | DuplicateTask:
    """What became of a draft, from what `tasker.submit_v1` answered."""
    if draft.task_uuid in created:
        return Submitted(draft.task_uuid, answer["steps"])
    return DuplicateTask(
        "A task with this identity already exists. The task's identity strategy prevents duplicate creation.",
        hint="change the input; where an idempotency key is given only the key counts: give another one",
    )


def _check_context(plan: Plan, request: Request) -> None:
    if problems := check_input(plan, request.context):
        lines = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
        raise InputInvalid(
            f"the input does not fit the template {plan.namespace}/{plan.name}:\n{lines}", problems=problems
        )

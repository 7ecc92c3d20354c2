"""Submission of tasks of one template: checked and drafted, admitted, created in one transaction, and started.

`DraftFactory.draft` checks a `Submission` and makes a `Draft`. `Submitter.submit_drafts` admits drafts (`_admit`) and
creates them (`_create`): one call of `submit_v1`, in which a worker of this process may claim the first steps
(`EagerStarter`). `lost_commit` repeats a call whose answer was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from functools import partial
from time import perf_counter
from typing import Any, Literal, TypedDict, TypeVar, get_args

from tasker.dataclasses import dataclass
from tasker.db.sql_files import query
from tasker.engine.answers import EagerStarter, SubmitAnswer
from tasker.engine.calls import Engine
from tasker.engine.identity import identity_hash, plan_key
from tasker.engine.plans import PlanStore
from tasker.errors import DuplicateTask, IdempotencyKeyReused, TaskerError, UsageError
from tasker.json_values import VALUE_LIMIT_BYTES, encode
from tasker.messaging.queues import check_namespace
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.check import (
    as_dict,
    callback_item,
    check_key,
    option_item,
    require_fit,
    template_gone,
    trace_item,
    unposted,
)
from tasker.services.submission.input_keys import collected, debounce_item, tenant_of, unique_item
from tasker.services.submission.limits import SubmissionLimits
from tasker.services.submission.lost_commit import First, log_created_tasks, retry_read_once, submit_with_recovery
from tasker.services.submission.parents import ParentStep, parent_item, tied_identity, too_deep
from tasker.services.submission.reused_keys import refuse_reused_keys
from tasker.services.submission.starts import deadline_item, expiry_item, start_item
from tasker.settings.execution import Execution
from tasker.template.names import PriorityName
from tasker.template.plan import Plan

E = TypeVar("E", bound=TaskerError)
OnDuplicate = Literal["refuse", "return"]
ON_DUPLICATE: tuple[OnDuplicate, ...] = get_args(OnDuplicate)
"""Choices for `submit` if a task of the same identity exists."""

DUPLICATED = query("tasks", "duplicated")


@dataclass(frozen=True, slots=True)
class Submission:
    """Options of one task to create. `priority`: a number, or `critical`, `high`, `normal`, `low` or `bulk`; workers
    claim the more urgent steps first.

    The task begins at `run_at`, a time with a zone (a datetime, or ISO 8601 text), or after `delay` (a timedelta,
    seconds, or text such as `5m`) from its creation; otherwise at once. If no worker has begun it after `expires_in`
    from its start, it is cancelled. `deadline` is a time, or a duration from the start of the task: when it has passed,
    the open steps fail. Without these options the template's apply. `correlation_id` defaults to the task's
    own id. `tenant` is for whom the task runs; without it, what the template finds in the input.
    The plugin `webhooks` posts the end of the task to `callback_url`.
    `traceparent` and `tracestate` are the submitter's trace context (W3C Trace Context).
    Within a handler, `key` identifies the task instead of its input; `App.submit` finds the `parent` by itself.
    """

    context: Mapping[str, Any] = field(default_factory=dict)
    priority: int | PriorityName | None = None
    idempotency_key: str | None = None
    correlation_id: str | None = None
    parent_correlation_id: str | None = None
    initiator: str = "unknown"
    source_system: str = "unknown"
    reason: str = ""
    tags: Sequence[str] = ()
    traceparent: str | None = None
    tracestate: str | None = None
    run_at: datetime | str | None = None
    delay: timedelta | float | str | None = None
    expires_in: timedelta | float | str | None = None
    deadline: datetime | timedelta | float | str | None = None
    tenant: str | None = None
    callback_url: str | None = None
    key: str | None = None
    parent: ParentStep | None = None


class SubmissionOptions(TypedDict, total=False):
    """Fields of a `Submission` except its context and parent, for functions that accept them as keywords."""

    priority: int | PriorityName | None
    idempotency_key: str | None
    correlation_id: str | None
    parent_correlation_id: str | None
    initiator: str
    source_system: str
    reason: str
    tags: Sequence[str]
    traceparent: str | None
    tracestate: str | None
    run_at: datetime | str | None
    delay: timedelta | float | str | None
    expires_in: timedelta | float | str | None
    deadline: datetime | timedelta | float | str | None
    tenant: str | None
    callback_url: str | None
    key: str | None


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """Created task with the number of steps it began with, or (not `created`) an existing task with its steps.

    `unique`: the existing task runs under the same unique key of its template. `debounced`: it has not begun, has the
    same debounce key, and got the input of this submission.
    """

    task_uuid: str
    step_count: int
    created: bool = True
    unique: bool = False
    debounced: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """Task about to be created: its id, its identity for deduplication, and its arguments for the engine.

    `keyed`: the identity is an idempotency key, so that a task of the same identity may have another input. `tied`:
    another attempt of the handler may have created it.
    """

    task_uuid: str
    identity: str
    item: Mapping[str, Any]
    keyed: bool = False
    tied: bool = False

    @property
    def is_deferred(self) -> bool:
        """True if the task was submitted with a time at which it begins."""
        return "run_at" in self.item or "delay_ms" in self.item

    @property
    def input(self) -> str:
        """Input as JSON."""
        text: str = self.item["context"].text
        return text


class DraftFactory:
    """Validation of submissions and conversion to the engine's arguments.

    `new_id` returns new task ids (UUID text whose last 24 bits are zero); `window` is the maximum number of enqueued
    steps of a namespace, `max_depth` that of links from a task to the first one of its line.
    """

    def __init__(
        self,
        new_id: Callable[[], str],
        *,
        window: int = Execution.enqueue_window,
        context_limit_bytes: int = VALUE_LIMIT_BYTES,
        max_depth: int = Execution.max_task_depth,
    ) -> None:
        self.new_id = new_id
        self._window, self.max_depth = window, max_depth
        self._limit = context_limit_bytes

    def draft(self, plan: Plan, request: Submission, task_id: str | None = None) -> Draft:
        """Return one valid task, with a new id or the given one.

        Raises `InputInvalid`, `NotStorable`, `IdentityError`, `UsageError` for an option of another kind;
        `InvalidQueueName` for a plan whose namespace can have no queue, so that no task waits for hints that cannot be
        sent.
        """
        check_namespace(plan.namespace)
        input_values = as_dict(request.context)
        require_fit(plan, input_values)
        task_id = task_id or self.new_id()
        context = encode(collected(plan, input_values), limit_bytes=self._limit)
        tenant = tenant_of(plan, request.tenant, input_values)
        key, name = check_key(request.idempotency_key), f"{plan.namespace}/{plan.name}"
        tied = tied_identity(request, plan_key(name, tenant), input_values)
        versioned = plan_key(f"{name}/{plan.version}", tenant)
        identity = tied or identity_hash(versioned, plan.identity_strategy, input_values, key, task_id)
        item = {
            "id": task_id,
            "identity": identity,
            **option_item(request, plan, self._limit),
            "context": context,
            **trace_item(request),
            **({} if tenant is None else {"tenant": tenant}),
            **unique_item(plan, input_values, tenant),
            **debounce_item(plan, input_values, tenant, self._limit),
            **callback_item(request.callback_url),
            **parent_item(request.parent),
            **start_item(request.run_at, request.delay, plan.debounce),
            **expiry_item(request.expires_in, plan.expires_in_seconds),
            **deadline_item(request.deadline, plan.deadline_seconds),
        }
        return Draft(task_id, identity, item, keyed=key is not None, tied=tied is not None)

    def args(
        self,
        template_id: int,
        drafts: Sequence[Draft],
        *,
        stored: str | None = None,
        announce: bool = False,
        waiter: str | None = None,
    ) -> dict[str, Any]:
        """Return the arguments of `tasker.submit_v1`.

        `stored` is the hash that the template must have if its id is cached. `announce` makes the commit itself wake
        workers, because nothing does so after it. `waiter` is the program to notify of the tasks' ends.
        """
        tasks = [draft.item for draft in drafts]
        depth = self.max_depth if any("parent" in item for item in tasks) else None
        more = {name: value for name, value in (("hash", stored), ("waiter", waiter), ("max_depth", depth)) if value}
        return {"template": template_id, "window": self._window, "announce": announce, **more, "tasks": tasks}


class Submitter:
    """Submission of tasks in transactions of its own. The parameters are those of `DraftFactory`, available as
    `drafts`.

    `admission` and `limits` may refuse new work; without them only the limit of a template does.
    """

    def __init__(
        self,
        engine: Engine,
        plans: PlanStore,
        new_id: Callable[[], str],
        *,
        window: int = Execution.enqueue_window,
        context_limit_bytes: int = VALUE_LIMIT_BYTES,
        admission: SubmissionAdmission | None = None,
        limits: SubmissionLimits | None = None,
        max_depth: int = Execution.max_task_depth,
    ) -> None:
        self._engine, self._plans = engine, plans
        self._admission, self.limits = admission, limits or SubmissionLimits(engine)
        self.drafts = DraftFactory(new_id, window=window, context_limit_bytes=context_limit_bytes, max_depth=max_depth)

    async def submit(
        self,
        plan: Plan,
        request: Submission,
        *,
        force: bool = False,
        on_duplicate: str = "refuse",
        waiter: str | None = None,
        starter: EagerStarter | None = None,
        client: str | None = None,
    ) -> SubmissionResult:
        """Create one task; with `on_duplicate="return"`, return the existing one of the same identity, if any.

        While a task of the same unique key runs, or one of the same debounce key has not begun, that one is returned,
        whatever `on_duplicate` says.

        A key that was used with another input is refused in either case (`IdempotencyKeyReused`, a `DuplicateTask`).

        `waiter` is the program to notify of the task's end; `starter` may run its first steps at once; `client` is the
        authenticated client, whose limit applies. Raises `InputInvalid`, `NotStorable`, `DuplicateTask`,
        `TemplateError`, `Overloaded`, `QuotaExceeded`, and `UsageError` for an option of another type.
        """
        if on_duplicate not in ON_DUPLICATE:
            raise UsageError(f"on_duplicate is {on_duplicate!r}, expected one of {', '.join(ON_DUPLICATE)}")
        drafts = [self.drafts.draft(plan, request)]
        more: dict[str, Any] = {"waiter": waiter, "starter": starter, "client": client}
        result = (await self.submit_drafts(plan, drafts, force=force, **more))[0]
        answer = existing_task_or_error(result, on_duplicate)
        if isinstance(answer, SubmissionResult):
            return answer
        raise answer

    async def submit_many(
        self, plan: Plan, requests: Sequence[Submission], *, force: bool = False, waiter: str | None = None
    ) -> list[SubmissionResult | DuplicateTask]:
        """Create many tasks of one template in one transaction, and return the results in the order of the requests.

        A duplicate yields a `DuplicateTask` and does not affect the others. An invalid input raises before anything is
        created, and its message gives the number of the request. `waiter` as in `submit`.
        """
        drafts = [self._nth(plan, requests, number) for number in range(len(requests))]
        return await self.submit_drafts(plan, drafts, force=force, waiter=waiter)

    def _nth(self, plan: Plan, requests: Sequence[Submission], number: int) -> Draft:
        try:
            return self.drafts.draft(plan, requests[number])
        except TaskerError as error:
            error.message = f"request {number + 1} of {len(requests)}: {error.message}"
            error.args = (error.message,)
            raise

    async def submit_drafts(
        self,
        plan: Plan,
        drafts: Sequence[Draft],
        *,
        force: bool = False,
        waiter: str | None = None,
        starter: EagerStarter | None = None,
        client: str | None = None,
    ) -> list[SubmissionResult | DuplicateTask]:
        """Create tasks from drafts that are already validated; see `submit_many`. `starter` and `client` as in
        `submit`."""
        await self._admit(plan, drafts, client)
        first = None if starter is None else partial(starter.start, self._engine.submit, len(drafts) * len(plan.roots))
        results = await self._create(plan, drafts, force, waiter, first)
        answered = zip(drafts, results, strict=True)
        unblocked = [
            draft for draft, answer in answered if isinstance(answer, DuplicateTask) and answer.task_uuid is None
        ]
        if not unblocked:  # the blocking task was not deleted between the refusal and the read
            return results
        names = [draft.task_uuid for draft in unblocked]
        again = dict(zip(names, await self._create(plan, unblocked, force, waiter, first), strict=True))
        return [again.get(draft.task_uuid, result) for draft, result in zip(drafts, results, strict=True)]

    async def _admit(self, plan: Plan, drafts: Sequence[Draft], client: str | None) -> None:
        """Raise `Overloaded` or `QuotaExceeded` while this work is refused; `UsageError` for a callback URL to which
        nobody posts."""
        if self._admission is not None:
            now = [draft for draft in drafts if not draft.is_deferred]  # the others add no load yet
            if now or not drafts:
                lowest = min((draft.item["priority"] for draft in now), default=0)
                await self._admission.require(plan, len(now), priority=lowest)
        if any("callback" in draft.item for draft in drafts):
            ((posts,),) = await self._engine.connection.execute(query("submission", "posts_callbacks"), {})
            if not posts:
                raise unposted()
        await self.limits.require(plan, drafts, client)

    async def _create(
        self, plan: Plan, drafts: Sequence[Draft], force: bool, waiter: str | None, first: First | None
    ) -> list[SubmissionResult | DuplicateTask]:
        """Call `submit_v1` and return a result for each draft; the template is registered where it is not known."""
        began, identities = perf_counter(), {draft.task_uuid: draft.identity for draft in drafts}
        for find in (self._plans.pinned, self._plans.register):
            template = await find(plan, force=force)
            args = self.drafts.args(template.template_id, drafts, stored=template.hash, waiter=waiter)
            answer = await submit_with_recovery(self._engine, args, identities, first)
            if not answer.forgotten:
                break
            self._plans.forget()
        else:
            raise template_gone(plan)
        if answer.too_deep:
            raise too_deep(self.drafts.max_depth)
        log_created_tasks(self._engine.listeners, plan, drafts, answer, began)
        again = [draft.identity for draft in drafts if draft.task_uuid not in answer.created]
        existing = await self._existing(again) if again else {}
        results = [submitted(draft, answer, existing.get(draft.identity)) for draft in drafts]
        return await refuse_reused_keys(self._engine.connection, drafts, results) if again else results

    async def _existing(self, identities: Sequence[str]) -> dict[str, Sequence[Any]]:
        """Return the rows of the query `duplicated`, by identity."""
        read = partial(self._engine.connection.execute, DUPLICATED, {"identities": identities})
        rows = await retry_read_once(read)
        return {identity: task for identity, *task in rows}


def existing_task_or_error(answer: SubmissionResult | E, on_duplicate: OnDuplicate) -> SubmissionResult | E:
    """Return the existing task in place of `DuplicateTask`, if `on_duplicate` is "return"."""
    if isinstance(answer, IdempotencyKeyReused):
        return answer
    if isinstance(answer, DuplicateTask) and on_duplicate == "return" and answer.task_uuid is not None:
        return SubmissionResult(answer.task_uuid, answer.steps, created=False)
    return answer


def submitted(
    draft: Draft, answer: SubmitAnswer, existing: Sequence[Any] | None = None
) -> SubmissionResult | DuplicateTask:
    """Return the result of a draft from the answer of `tasker.submit_v1`; `existing` is a row of the query
    `duplicated`."""
    if draft.task_uuid in answer.created:
        return SubmissionResult(draft.task_uuid, answer.steps)
    task_uuid, state, steps = existing or (None, None, 0)
    if task_uuid == draft.task_uuid:  # created by an earlier call whose answer was lost
        return SubmissionResult(draft.task_uuid, steps)
    if draft.tied and task_uuid is not None:  # by an earlier attempt of the handler
        return SubmissionResult(task_uuid, steps, created=False)
    if existing is None and (running := answer.running.get(draft.task_uuid)):
        return SubmissionResult(running[0], running[2], created=False, unique=True)
    if existing is None and (merged := answer.debounced.get(draft.task_uuid)):
        return SubmissionResult(merged[0], merged[2], created=False, debounced=True)
    return DuplicateTask(
        "A task with this identity already exists. The task's identity strategy prevents duplicate creation.",
        task_uuid=task_uuid,
        state=state,
        steps=steps,
        hint="change the input or the idempotency key",
    )

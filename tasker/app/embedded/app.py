"""Tasker inside a program or a notebook: submit, run, wait, all in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tasker.app.embedded.lifecycle import AppLifecycle
from tasker.app.embedded.options import PlanOptions, RunOptions, SubmitOptions
from tasker.contracts.plan import Plan
from tasker.db.caller_transaction import CallerTransaction, in_caller_transaction
from tasker.db.own_loop import require_loop
from tasker.errors import DuplicateTask, TaskerError
from tasker.process.system import new_task_uuid
from tasker.services.engine.starting import EagerStarter
from tasker.services.pauses import PauseOptions, PauseTarget
from tasker.services.reports import TaskReport
from tasker.services.server.bulk_submission import TemplateSubmission
from tasker.services.submitting.caller_submission import LOCK_TIMEOUT_SECONDS, CallerSubmission
from tasker.services.submitting.fitting import check_priority
from tasker.services.submitting.submission import OnDuplicate, Submission, SubmissionOptions, SubmissionResult
from tasker.services.tasks import checked
from tasker.services.waiting.deadlines import remaining_seconds, submission_deadline

if TYPE_CHECKING:
    from tasker.execution.whole_runs import LocalTask


class App(AppLifecycle):
    """Submits tasks and works on them. Use it as `async with tasker.App() as app:`.

    Parameters: `database_url` of a PostgreSQL server (else `DATABASE_URL`, else that of the configuration, else the
    embedded one, data under `data_dir`); `handlers` are modules, files or folders with handlers, `registry` is one that
    is loaded already; `environment` chooses the templates' overrides; `backend` is the messaging backend; `work` False
    submits and waits only. `configuration` gives everything that is not given here, by default what the variables of
    the environment name; `runner` makes what runs the handlers; submitting raises `Overloaded` while a namespace has
    more ready steps than `depth_limits`; `max_connections` is the size of its pool of connections, else
    `common.database.pool.max_connections`.
    """

    async def submit(
        self,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        template: str | None = None,
        environment: str | None = None,
        on_duplicate: OnDuplicate = "refuse",
        awaited: bool = False,
        **options: Unpack[SubmissionOptions],
    ) -> SubmissionResult:
        """Create a task and return at once.

        `target` is a template file, a folder with `workflow.yaml`, a compiled plan, or `namespace/name[:version]` of a
        registered template; `options` are those of `Submission` (priority, tags ...). Handlers beside a template
        file are loaded. A task of the same identity is refused, or the answer (`on_duplicate="return"`). `awaited`:
        this program is going to wait for it, and whoever ends it notifies it. Raises `TemplateError`,
        `HandlerNotFound`, `InputInvalid`, `DuplicateTask` with the `task_uuid` of the existing one.
        """
        starter = None if self._runtime is None else self._runtime.starter
        which: PlanOptions = {"template": template, "environment": environment}
        return await self._create(target, context, starter, on_duplicate, awaited=awaited, **which, **options)

    async def _create(
        self,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None,
        starter: EagerStarter | None,
        on_duplicate: OnDuplicate = "refuse",
        *,
        template: str | None = None,
        environment: str | None = None,
        awaited: bool = True,
        **options: Unpack[SubmissionOptions],
    ) -> SubmissionResult:
        require_loop(self._loop)
        if self._runtime is not None:
            self._runtime.worker.slots.reserve_for_submission()  # before the namespace of a first task is looked into
        plan = await self.plan(target, template=template, environment=environment)
        request, telling = Submission({} if context is None else context, **options), self._waiters.register(awaited)
        submitted = await self._submitter.submit(
            plan, request, force=True, on_duplicate=on_duplicate, waiter=telling.waiter, starter=starter
        )
        self._waiters.submitted(telling, [submitted])
        return submitted

    async def submit_request(
        self, plan: Plan, request: Submission, *, on_duplicate: OnDuplicate = "refuse", awaited: bool = False
    ) -> SubmissionResult:
        """Create a task of a registered template, whoever will run it: nothing is loaded or served for it here.

        `awaited` as of `submit`.
        """
        telling = self._waiters.register(awaited)
        submitted = await self._submitter.submit(plan, request, on_duplicate=on_duplicate, waiter=telling.waiter)
        self._waiters.submitted(telling, [submitted])
        self._wake()
        return submitted

    async def submit_order(
        self, order: TemplateSubmission, *, on_duplicate: OnDuplicate = "refuse", awaited: bool = False
    ) -> SubmissionResult:
        """As `submit_request`, of the template that the order names. Raises `TemplateNotFound` as well."""
        plan = (await self.plans.find(order.namespace, order.template, order.version)).plan
        return await self.submit_request(plan, order.request, on_duplicate=on_duplicate, awaited=awaited)

    async def submit_orders(
        self, orders: Sequence[TemplateSubmission], *, on_duplicate: OnDuplicate = "refuse"
    ) -> list[SubmissionResult | TaskerError]:
        """Create tasks of any registered templates, with an answer for each; those of one template in one transaction.

        Whoever serves them runs them. What is wrong with one task is its answer, and holds up none.
        """
        answers = await self._bulk.submit(orders, on_duplicate=on_duplicate)
        self._wake()
        return answers

    async def submit_many(
        self,
        target: str | Path | Plan,
        requests: Sequence[Submission | Mapping[str, Any]],
        *,
        awaited: bool = False,
        **options: Unpack[PlanOptions],
    ) -> list[SubmissionResult | DuplicateTask]:
        """Create many tasks of one template in one transaction; the answers are in the order of the requests.

        Each request is an input, or a `Submission` where more than the input is to be said. A duplicate is answered
        with
        `DuplicateTask` and holds up nothing else. `awaited` as of `submit`. Raises `InputInvalid`, which names the
        request, before anything is created.
        """
        plan = await self.plan(target, **options)
        telling = self._waiters.register(awaited)
        wanted = [each if isinstance(each, Submission) else Submission(each) for each in requests]
        submitted = await self._submitter.submit_many(plan, wanted, force=True, waiter=telling.waiter)
        self._waiters.submitted(telling, submitted)
        self._wake()
        return submitted

    async def submit_in(
        self,
        connection: Any,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        lock_timeout: float = LOCK_TIMEOUT_SECONDS,
        **options: Unpack[SubmitOptions],
    ) -> SubmissionResult:
        """Create a task in the caller's own transaction: it exists if, and only if, the caller commits (rule 23).

        `connection` is a SQLAlchemy AsyncConnection, AsyncSession, Connection or Session on this app's database, or a
        psycopg Connection; nothing is committed here. `lock_timeout` is in seconds, `options` are those of `submit`
        without `on_duplicate`. After any error the transaction can go on. Raises as `submit`, `UsageError` for what is
        no transaction of this database, and `DatabaseError` when a lock was not to be had in time.
        """
        submit = await self.prepare_submission(target, context, **options)
        return await in_caller_transaction(connection, lambda transaction: submit(transaction, lock_timeout))

    async def prepare_submission(
        self,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        template: str | None = None,
        environment: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> Callable[[CallerTransaction, float], SubmissionResult]:
        """All of `submit_in` but the writing: the template is registered, in a transaction of its own."""
        plan = await self.plan(target, template=template, environment=environment)
        request = Submission({} if context is None else context, **options)
        await self.admission.require(plan, priority=check_priority(request.priority))
        plan = (await self.plans.pinned(plan, force=True)).plan
        if self._engine.transactional:  # made in the caller's transaction, others would wait for the queue
            await self.messaging.ensure_namespace(plan.namespace)
        send = None if self._engine.transactional else self._after_commit.send
        backend, forget = self._resources.messaging.backend, self.plans.forget
        submission = CallerSubmission(self._submitter.drafts, backend, send=send, on_missing=forget)
        return lambda transaction, lock_timeout: submission.submit(
            transaction, plan, request, lock_timeout=lock_timeout
        )

    async def run(
        self,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        **options: Unpack[RunOptions],
    ) -> TaskReport:
        """Create a task and wait for its end; the report with all results. Raises as `submit` and `wait`.

        `timeout` is in seconds, for both together: a `TimeoutError` says whether the task goes on, or may not have been
        created. Without an `idempotency_key` every run is a new task, whatever the template's identity strategy.
        """
        key = options.get("idempotency_key")
        options["idempotency_key"] = key = new_task_uuid() if key is None else key
        with nullcontext() if self._runtime is None else self._runtime.whole_run() as seen:
            async with submission_deadline(timeout, key) as limit:
                submitted = await self._create(target, context, seen, **options)
            return await self._wait(submitted.task_uuid, remaining_seconds(limit), seen)

    async def wait(self, task_uuid: str, *, timeout: float | None = None) -> TaskReport:
        """The report once the task has ended. Raises `TaskNotFound`, `UsageError`; after `timeout` s `TimeoutError`."""
        return await self._wait(checked(task_uuid), timeout)

    async def _wait(self, task_uuid: str, timeout: float | None, seen: LocalTask | None = None) -> TaskReport:
        async def report() -> TaskReport:
            known = None if seen is None else seen.report(task_uuid)
            return known or await self.tasks.report(task_uuid)

        require_loop(self._loop)
        return await self._waiters.read(task_uuid, report, timeout, shows_end=lambda found: found.finished)

    async def finished(self, task_uuid: str, *, timeout: float | None = None) -> None:
        """Return once the task has ended, without reading its report. `timeout` as in `wait`."""
        require_loop(self._loop)
        await self._waiters.wait(checked(task_uuid), timeout)

    async def pause(
        self, namespace: str | None = None, *, reason: str = "", actor: str = "", **which: Unpack[PauseOptions]
    ) -> bool:
        """Let nothing more start: in a namespace, or `template="NS/NAME"`, `step="NS/NAME/STEP"`, `task=uuid`.

        What runs goes on; what is ready is held, without an attempt. With `queue=name` nobody takes anything from a
        queue of the orchestration. False when it is paused already. Raises `UsageError`, `TaskNotFound`, and
        `StateMachineError` for a task that has ended. `pauses` has the list.
        """
        return await self.pauses.pause(PauseTarget.of(namespace, **which), actor=actor, reason=reason)

    async def resume(
        self, namespace: str | None = None, *, reason: str = "", actor: str = "", **which: Unpack[PauseOptions]
    ) -> int | None:
        """End a pause, named as in `pause`; how many ready steps, or messages, go on; None when it was not paused."""
        return await self.pauses.resume(PauseTarget.of(namespace, **which), actor=actor, reason=reason)

    async def plan(
        self, target: str | Path | Plan, *, template: str | None = None, environment: str | None = None
    ) -> Plan:
        """The compiled plan of a target, ready to run: its handlers are loaded and its namespace is served."""
        plan = await self._targets.find(target, template, environment, self._environment)
        if self._runtime is not None:
            from tasker.services.authoring.handlers import require_handlers

            require_handlers(self.registry, plan)
            await self._runtime.serve(plan.namespace)
        return plan

    async def plan_of(self, task_uuid: str) -> Plan:
        """The plan that a task is pinned to, ready to run like that of `plan`. Raises `TaskNotFound`."""
        plan = await self.plan(await self.pinned_plan(task_uuid))
        self._wake()
        return plan

    async def pinned_plan(self, task_uuid: str) -> Plan:
        """The plan that a task is pinned to, to look at it. Raises `TaskNotFound`, `PlanUnreadable`."""
        return await self.plans.get(await self.tasks.template_id(task_uuid))

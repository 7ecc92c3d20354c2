"""Tasker inside a program or a notebook: submit, run and wait in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tasker.app.lifecycle import AppLifecycle, PlanOptions, RunOptions, SubmitOptions
from tasker.clock import new_task_uuid
from tasker.db.caller_transaction import CallerTransaction, in_caller_transaction
from tasker.db.pool import require_loop
from tasker.engine.answers import EagerStarter
from tasker.errors import DuplicateTask
from tasker.services.incoming_events import SendOptions, send_in
from tasker.services.operators.pauses import PauseOptions, PauseTarget
from tasker.services.submission.check import check_priority
from tasker.services.submission.in_transaction import LOCK_TIMEOUT_SECONDS, CallerSubmission
from tasker.services.submission.parents import is_within_handler, within_handler
from tasker.services.submission.starts import start_item
from tasker.services.submission.submit import OnDuplicate, Submission, SubmissionOptions, SubmissionResult
from tasker.services.tasks.end_listeners import remaining_seconds, submission_deadline
from tasker.services.tasks.read import checked
from tasker.template.plan import Plan
from tasker.views.approvals import CountedVote
from tasker.views.children import TaskFamily
from tasker.views.incoming_events import SentEvent
from tasker.views.tasks import TaskReport

if TYPE_CHECKING:
    from tasker.execution.fast.local_tasks import LocalTask


class App(AppLifecycle):
    """Client and worker inside a program. Use it as `async with tasker.App() as app:`.

    Parameters: `database_url` of a PostgreSQL server (default: `DATABASE_URL`, then the configuration, then the
    embedded server with its data under `data_dir`). `handlers` are modules, files or folders with handlers; `registry`
    is an already loaded registry. `environment` selects the templates' overrides. `backend` is the messaging backend.
    `work` False only submits and waits. `configuration` supplies everything not given here, by default that of the
    environment variables. `runner` creates the attempt runner. Submitting raises `Overloaded` while a namespace has
    more ready steps than `depth_limits`. `max_connections` is the size of the connection pool, by default
    `common.database.pool.max_connections`. `resources` are clients for handlers by name, or tables as those of
    `[resources.NAME]`; they take the place of configured ones.
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
        registered template; `options` are those of `Submission` (priority, run_at, delay ...). Handlers beside a
        template file are loaded; `submissions` creates tasks without loading or serving anything. A task of the same
        identity raises an error, or is returned with `on_duplicate="return"`. `awaited`: this program will wait for the
        task, so the process that ends it notifies this program.

        Within a handler the task is a child of its step: the handler's next attempt gets the same task, whatever
        `on_duplicate` says. Two tasks with the same input need a `key` each. Raises `TemplateError`, `HandlerNotFound`,
        `InputInvalid`, `DuplicateTask` with the `task_uuid` of the existing task.
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
            self._runtime.worker.slots.reserve_for_submission()  # before the namespace of a first task is polled
        plan = await self.plan(target, template=template, environment=environment)
        request = within_handler(Submission({} if context is None else context, **options))
        registration = self._waiters.register(awaited)
        submitted = await self._submitter.submit(
            plan, request, force=True, on_duplicate=on_duplicate, waiter=registration.waiter, starter=starter
        )
        self._waiters.submitted(registration, [submitted])
        return submitted

    async def submit_many(
        self,
        target: str | Path | Plan,
        requests: Sequence[Submission | Mapping[str, Any]],
        *,
        awaited: bool = False,
        **options: Unpack[PlanOptions],
    ) -> list[SubmissionResult | DuplicateTask]:
        """Create many tasks of one template in one transaction; the answers are in the order of the requests.

        Each request is an input, or a `Submission` with further options. A duplicate is answered with `DuplicateTask`
        and does not affect the others. `awaited` is as in `submit`. Raises `InputInvalid`, which names the request,
        before anything is created.
        """
        plan = await self.plan(target, **options)
        registration = self._waiters.register(awaited)
        submissions = [
            within_handler(request if isinstance(request, Submission) else Submission(request)) for request in requests
        ]
        submitted = await self._submitter.submit_many(plan, submissions, force=True, waiter=registration.waiter)
        self._waiters.submitted(registration, submitted)
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
        without `on_duplicate`. After any error the transaction remains usable. Raises the errors of `submit`,
        `UsageError` if `connection` is not a transaction of this database, and `DatabaseError` if a lock is not
        available in time.
        """
        submit = await self._prepare_submission(target, context, **options)
        return await in_caller_transaction(connection, lambda transaction: submit(transaction, lock_timeout))

    async def children(
        self, task_uuid: str, *, step: str | None = None, after: str | None = None, limit: int = 50
    ) -> TaskFamily:
        """Return a page of the tasks that the steps of a task, or one of them, have started, and who started the task.

        `after` is `next_after` of the previous page. Raises `TaskNotFound`, `UsageError`.
        """
        return await self.tasks.children(task_uuid, step=step, after=after, limit=limit)

    async def send_event(
        self, namespace: str, name: str, payload: Any = None, **options: Unpack[SendOptions]
    ) -> SentEvent:
        """Send an event to the steps of a namespace that wait for it, or will (`type: wait_for_event`).

        Options are those of `SendOptions`. Raises `UsageError`, `NotStorable`.
        """
        return await self.incoming_events.send(namespace, name, payload, **options)

    async def decide(
        self,
        task_uuid: str,
        step: str,
        decision: str,
        *,
        by: str,
        form: Mapping[str, Any] | None = None,
        comment: str = "",
    ) -> CountedVote:
        """Approve or reject a step that waits for persons (`type: approval`), as the person `by`.

        `decision` is `approved` or `rejected`. The program vouches for the person: permissions in the step's `from`
        are not checked, names are. Raises `UsageError`, `InputInvalid`, `NotPermitted`, `ApprovalNotFound`, and
        `ApprovalDecided` for a second vote of a person and after the end.
        """
        return await self.approvals.decide(task_uuid, step, decision, actor=by, form=form, comment=comment)

    async def send_event_in(
        self,
        connection: Any,
        namespace: str,
        name: str,
        payload: Any = None,
        *,
        lock_timeout: float = LOCK_TIMEOUT_SECONDS,
        **options: Unpack[SendOptions],
    ) -> SentEvent:
        """Send an event in the caller's own transaction: it is sent if, and only if, the caller commits.

        `connection` is as in `submit_in`. The timekeeper gives the event to waits after the commit.
        """
        return await in_caller_transaction(
            connection, lambda transaction: send_in(transaction, namespace, name, payload, lock_timeout, **options)
        )

    async def _prepare_submission(
        self,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        template: str | None = None,
        environment: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> Callable[[CallerTransaction, float], SubmissionResult]:
        """Prepare `submit_in` up to the write; the template is registered in a transaction of its own."""
        plan = await self.plan(target, template=template, environment=environment)
        request = within_handler(Submission({} if context is None else context, **options))
        if not start_item(request.run_at, request.delay):  # a task that begins later adds no load yet
            await self.admission.require(plan, priority=check_priority(request.priority, plan.priority))
        plan = (await self.plans.pinned(plan, force=True)).plan
        if self._engine.transactional:  # in the caller's transaction, the queue would stay locked until the commit
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
        """Create a task, wait for its end and return the report with all results.

        `timeout` is in seconds, for both together: a `TimeoutError` says whether the task continues, or may not have
        been created. Without an `idempotency_key` every run is a new task under any identity strategy; within a handler
        it is that of its step, as in `submit`.
        Raises the errors of `submit` and `wait`.
        """
        key = options.get("idempotency_key")
        if key is None and not is_within_handler():
            options["idempotency_key"] = key = new_task_uuid()
        with nullcontext() if self._runtime is None else self._runtime.whole_run() as seen:
            async with submission_deadline(timeout, key) as limit:
                submitted = await self._create(target, context, seen, **options)
            return await self._wait(submitted.task_uuid, remaining_seconds(limit), seen)

    async def wait(self, task_uuid: str, *, timeout: float | None = None) -> TaskReport:
        """Wait for the task's end and return its report.

        Raises `TaskNotFound`, `UsageError`, and `TimeoutError` after `timeout` seconds.
        """
        return await self._wait(checked(task_uuid), timeout)

    async def _wait(self, task_uuid: str, timeout: float | None, seen: LocalTask | None = None) -> TaskReport:
        async def report() -> TaskReport:
            known = None if seen is None else seen.report(task_uuid)
            return known or await self.tasks.report(task_uuid)

        require_loop(self._loop)
        return await self._waiters.read(task_uuid, report, timeout, shows_end=lambda task_report: task_report.finished)

    async def finished(self, task_uuid: str, *, timeout: float | None = None) -> None:
        """Wait for the task's end without reading its report. `timeout` is as in `wait`."""
        require_loop(self._loop)
        await self._waiters.wait(checked(task_uuid), timeout)

    async def pause(
        self, namespace: str | None = None, *, reason: str = "", actor: str = "", **which: Unpack[PauseOptions]
    ) -> bool:
        """Stop starting steps in a namespace, or of `template="NS/NAME"`, `step="NS/NAME/STEP"`, `task=uuid`.

        Running steps continue; ready steps wait without using an attempt. With `queue=name`, no messages are taken from
        an orchestration queue. Returns False if the target is already paused. Raises `UsageError`, `TaskNotFound`, and
        `StateMachineError` for a task that has ended. `pauses` lists all pauses.
        """
        return await self.pauses.pause(PauseTarget.of(namespace, **which), actor=actor, reason=reason)

    async def resume(
        self, namespace: str | None = None, *, reason: str = "", actor: str = "", **which: Unpack[PauseOptions]
    ) -> int | None:
        """End a pause, named as in `pause`. Return the number of ready steps or messages, or None if not paused."""
        return await self.pauses.resume(PauseTarget.of(namespace, **which), actor=actor, reason=reason)

    async def plan(
        self, target: str | Path | Plan, *, template: str | None = None, environment: str | None = None
    ) -> Plan:
        """Return the compiled plan of a target, ready to run: its handlers are loaded and its namespace is served."""
        plan = await self._targets.find(target, template, environment, self._environment)
        if self._runtime is not None:
            from tasker.services.workflows.handlers import require_handlers
            from tasker.services.workflows.targets import templates_started

            require_handlers(self.registry, plan)
            for namespace in sorted({plan.namespace, *(namespace for namespace, _ in templates_started(plan))}):
                await self._runtime.serve(namespace)
        return plan

    async def plan_of(self, task_uuid: str) -> Plan:
        """Return the plan that a task is pinned to, ready to run like that of `plan`. Raises `TaskNotFound`."""
        plan = await self.plan(await self.pinned_plan(task_uuid))
        self._wake()
        return plan

    async def pinned_plan(self, task_uuid: str) -> Plan:
        """Return the plan that a task is pinned to, for reading only. Raises `TaskNotFound`, `PlanUnreadable`."""
        return await self.plans.get(await self.tasks.template_id(task_uuid))

"""Tasker inside a program or a notebook: submit, run, wait, all in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tasker.app.after_commit import AfterCommit
from tasker.app.assembly.worker import worker_process
from tasker.app.bootstrap import Resources, prepare
from tasker.app.configured import Configured
from tasker.app.configured.program import configured_program
from tasker.app.runtime import Runtime
from tasker.app.services import Services
from tasker.app.target_plans import TargetPlans
from tasker.app.waiting import Waiters
from tasker.contracts.messaging import BackendSettings
from tasker.contracts.plan import Plan
from tasker.db.caller_transaction import CallerTransaction, in_caller_transaction
from tasker.errors import DuplicateTask
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.settings import WorkerSettings
from tasker.handler import HandlerRegistry
from tasker.lifecycle.pressure import DepthLimits
from tasker.messaging.service import MessagingService
from tasker.orchestration.sweep import SweepSettings
from tasker.process.dead_workers import end_dead_leases
from tasker.process.system import SystemClock, new_task_uuid
from tasker.resilience.registry import Breakers
from tasker.services.authoring.handlers import load_handlers, require_handlers
from tasker.services.caller_submission import LOCK_TIMEOUT_SECONDS, CallerSubmission
from tasker.services.pauses import Target
from tasker.services.reports import TaskReport
from tasker.services.submission import Request, Submitted
from tasker.services.tasks import checked


class App:
    """Submits tasks and works on them. Use it as `async with tasker.App() as app:`.

    Parameters: `database_url` of a PostgreSQL server (else `DATABASE_URL`, else that of the configuration, else the
    embedded one, data under `data_dir`); `handlers` are modules, files or folders with handlers, `registry` is one that
    is loaded already; `environment` chooses the templates' overrides; `backend` is the messaging backend; `work` False
    submits and waits only. `configuration` gives everything that is not given here, by default what the variables of
    the environment name; `runner` makes what runs the handlers; submitting raises `Overloaded` while a namespace has
    more ready steps than `depth_limits`.
    """

    def __init__(
        self,
        database_url: str | None = None,
        *,
        handlers: Sequence[str | Path] = (),
        environment: str | None = None,
        backend: str | None = None,
        data_dir: Path | None = None,
        work: bool = True,
        registry: HandlerRegistry | None = None,
        settings: WorkerSettings | None = None,
        sweeps: SweepSettings | None = None,
        configuration: Configured | None = None,
        depth_limits: DepthLimits | None = None,
        backend_settings: BackendSettings | None = None,
        runner: Callable[..., AttemptRunner] = AttemptRunner,
    ) -> None:
        self._configuration = configuration = configured_program(database_url, data_dir, configuration)
        self._data_dir, self._registry, self._runner = data_dir, registry, runner
        self._backend = backend or configuration.backend
        self._backend_settings = {**configuration.backend_settings.get(self._backend, {}), **(backend_settings or {})}
        self._environment = environment or configuration.environment
        self._sources = [str(source) for source in handlers]
        self._work = work
        self._settings, self._sweeps = settings or configuration.worker, sweeps or configuration.sweeps
        self._depth_limits = depth_limits or configuration.depth_limits
        self.breakers = Breakers(SystemClock(), configuration.breakers)

    async def __aenter__(self) -> Self:
        """Connect, bring the schema up to date and start working."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; steps that run are given `stop`'s grace."""
        await self.stop()

    async def start(self) -> None:
        """Connect, bring the schema up to date and start working."""
        self._resources: Resources = prepare(
            self._configuration.database_url,
            backend=self._backend,
            data_dir=self._data_dir,
            names=self._configuration.queue_names,
            backend_settings=self._backend_settings,
            breakers=self.breakers,
            database=self._configuration.database,
        )
        await self._resources.open()
        limits, breaker = self._depth_limits, self.breakers.database
        made = Services(self._resources, self._settings, self._sweeps, self._configuration, limits, breaker)
        self._connection, self._engine = made.connection, made.engine
        self.tasks, self.views, self.plans, self.repairs = made.tasks, made.views, made.plans, made.repairs
        self.steps, self.pauses, self.workers, self.checks = made.steps, made.pauses, made.workers, made.checks
        self._submitter, self.admission = made.submitter, made.admission
        self.registry: HandlerRegistry = self._registry or load_handlers(self._sources, self._configuration.importable)
        self._targets = TargetPlans(self.registry, self.plans)
        self._waiters = Waiters(self._connection.watch, watches=self._work)
        self._after_commit = AfterCommit(self._connection, self._resources.messaging, self._wake)
        self._runtime: Runtime | None = None
        if self._work:
            self._runtime = worker_process(
                self._resources.url,
                self._resources.messaging,
                self.registry,
                [],
                settings=self._settings,
                sweeps=self._sweeps,
                breakers=self.breakers,
                runner=self._runner,
                on_finished=self._ended,
                on_elsewhere=lambda task: self._waiters.look_again(),
            )
            if self._resources.server is not None:
                await end_dead_leases(self._engine)
            await self._runtime.start()

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Stop working (see `stop_working`) and let go of the database. May be called twice."""
        await self.stop_working(grace_seconds)
        await self._waiters.close()
        await self._after_commit.close()
        await self._connection.close()
        await self._resources.messaging.close()
        self._resources.close()

    async def stop_working(self, grace_seconds: float = 10.0) -> None:
        """Steps that run get `grace_seconds`, then they are given back; tasks can still be read."""
        if self._runtime is not None:
            await self._runtime.stop(grace_seconds)

    @property
    def database_url(self) -> str:
        """The database in use."""
        return self._resources.url

    @property
    def messaging(self) -> MessagingService:
        """The messaging service in use."""
        return self._resources.messaging

    @property
    def runtime(self) -> Runtime | None:
        """The worker of this app; None with `work=False`."""
        return self._runtime

    async def submit(
        self,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        template: str | None = None,
        environment: str | None = None,
        on_duplicate: str = "refuse",
        **options: Any,
    ) -> Submitted:
        """Create a task and return at once.

        `target` is a template file, a folder with `workflow.yaml`, a compiled plan, or `namespace/name[:version]` of a
        registered template; `options` are those of `Request` (priority, tags ...). Handlers beside a template
        file are loaded. A task of the same identity is refused, or the answer (`on_duplicate="return"`). Raises
        `TemplateError`, `HandlerNotFound`, `InputInvalid`, `DuplicateTask` with the `task_uuid` of the existing one.
        """
        plan = await self.plan(target, template=template, environment=environment)
        request = Request(context or {}, **options)
        submitted = await self._submitter.submit(plan, request, force=True, on_duplicate=on_duplicate)
        self._wake()
        return submitted

    async def submit_request(self, plan: Plan, request: Request, *, on_duplicate: str = "refuse") -> Submitted:
        """Create a task of a registered template, whoever will run it: nothing is loaded or served for it here."""
        submitted = await self._submitter.submit(plan, request, on_duplicate=on_duplicate)
        self._wake()
        return submitted

    async def submit_many(
        self, target: str | Path | Plan, requests: Sequence[Request], **options: Any
    ) -> list[Submitted | DuplicateTask]:
        """Create many tasks of one template in one transaction."""
        plan = await self.plan(target, **options)
        submitted = await self._submitter.submit_many(plan, requests, force=True)
        self._wake()
        return submitted

    async def submit_in(
        self,
        connection: Any,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        lock_timeout: float = LOCK_TIMEOUT_SECONDS,
        **options: Any,
    ) -> Submitted:
        """Create a task in the caller's own transaction: it exists if, and only if, the caller commits (rule 23).

        `connection` is a SQLAlchemy AsyncConnection, AsyncSession, Connection or Session on this app's database, or a
        psycopg Connection; nothing is committed here. `lock_timeout` is in seconds, `options` are those of `submit`.
        After any error the transaction can go on. Raises as `submit`, `UsageError` for what is no transaction of this
        database, and `DatabaseError` when a lock was not to be had in time.
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
        **options: Any,
    ) -> Callable[[CallerTransaction, float], Submitted]:
        """All of `submit_in` but the writing: the template is registered, in a transaction of its own."""
        plan = await self.plan(target, template=template, environment=environment)
        request = Request(context or {}, **options)
        await self.admission.require(plan, priority=request.priority)
        plan = (await self.plans.register(plan, force=True)).plan
        if self._engine.transactional:  # made in the caller's transaction, others would wait for the queue
            await self.messaging.ensure_namespace(plan.namespace)
        send = None if self._engine.transactional else self._after_commit.send
        submission = CallerSubmission(self._submitter.drafts, self._resources.messaging.backend, send=send)
        return lambda transaction, lock_timeout: submission.submit(
            transaction, plan, request, lock_timeout=lock_timeout
        )

    async def run(
        self,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> TaskReport:
        """Create a task and wait for its end; the report with all results. `timeout` in seconds, as in `wait`.

        Without an `idempotency_key` every run is a new task, whatever the template's identity strategy.
        """
        options.setdefault("idempotency_key", new_task_uuid())
        submitted = await self.submit(target, context, **options)
        return await self.wait(submitted.task_uuid, timeout=timeout)

    async def wait(self, task_uuid: str, *, timeout: float | None = None) -> TaskReport:
        """The report once the task has ended. Raises `TaskNotFound`, `UsageError`; after `timeout` s `TimeoutError`."""
        return await self._waiters.read(checked(task_uuid), lambda: self.tasks.report(task_uuid), timeout)

    async def finished(self, task_uuid: str, *, timeout: float | None = None) -> None:
        """Return once the task has ended, without reading its report. `timeout` as in `wait`."""
        await self._waiters.wait(checked(task_uuid), timeout)

    async def pause(self, namespace: str | None = None, *, reason: str = "", actor: str = "", **which: str) -> bool:
        """Let nothing more start: in a namespace, or `template="NS/NAME"`, `step="NS/NAME/STEP"`, `task=uuid`.

        What runs goes on; what is ready is held, without an attempt. With `queue=name` nobody takes anything from a
        queue of the orchestration. False when it is paused already. Raises `UsageError`, `TaskNotFound`, and
        `StateMachineError` for a task that has ended. `pauses` has the list.
        """
        return await self.pauses.pause(Target.of(namespace, **which), actor=actor, reason=reason)

    async def resume(
        self, namespace: str | None = None, *, reason: str = "", actor: str = "", **which: str
    ) -> int | None:
        """End a pause, named as in `pause`; how many ready steps, or messages, go on; None when it was not paused."""
        return await self.pauses.resume(Target.of(namespace, **which), actor=actor, reason=reason)

    async def plan(
        self, target: str | Path | Plan, *, template: str | None = None, environment: str | None = None
    ) -> Plan:
        """The compiled plan of a target, ready to run: its handlers are loaded and its namespace is served."""
        plan = await self._targets.find(target, template, environment, self._environment)
        if self._runtime is not None:
            require_handlers(self.registry, plan)
            await self._runtime.serve(plan.namespace)
        return plan

    async def plan_of(self, task_uuid: str) -> Plan:
        """The plan that a task is pinned to, ready to run like that of `plan`. Raises `TaskNotFound`."""
        plan = await self.plan(await self.plans.get(await self.tasks.template_id(task_uuid)))
        self._wake()
        return plan

    def _ended(self, task_uuid: str, state: str) -> None:
        """A worker's write was answered: callers need not wait until their breaker tries by itself."""
        self._connection.breaker.encouraged()
        self._waiters.ended(task_uuid)

    def _wake(self) -> None:
        if self._runtime is not None:
            self._runtime.wake()

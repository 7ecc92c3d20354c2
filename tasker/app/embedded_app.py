"""Tasker inside a program or a notebook: submit, run, wait, all in one process."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tasker.app.bootstrap import Ground, prepare
from tasker.app.configured import UNCONFIGURED, Configured
from tasker.app.runtime import Runtime
from tasker.app.system import new_task_uuid
from tasker.app.waiting import Waiters
from tasker.contracts.messaging import BackendSettings
from tasker.contracts.plan import Plan
from tasker.db.connection import Connection
from tasker.db.queries import query
from tasker.errors import DuplicateTask, UsageError
from tasker.execution.settings import WorkerSettings
from tasker.handler import HandlerRegistry
from tasker.orchestration.sweep import SweepSettings
from tasker.services.engine import Engine
from tasker.services.handlers import add_handlers_beside, load_handlers, require_handlers
from tasker.services.plans import PlanStore
from tasker.services.reports import TaskReport
from tasker.services.steps import Steps
from tasker.services.submission import Request, Submitted, Submitter
from tasker.services.tasks import Tasks
from tasker.services.templates import load_plans


class App:
    """Submits tasks and works on them. Use it as `async with tasker.App() as app:`.

    Parameters: `database_url` of a PostgreSQL server (default: the embedded one, data under `data_dir`); `handlers` are
    modules, files or folders with handlers, `registry` is one that is loaded already; `environment` chooses the
    templates' overrides; `backend` is the messaging backend; `work` False submits and waits only. `configuration` gives
    everything that is not given here (see `tasker.app.configured`).
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
        configuration: Configured = UNCONFIGURED,
        backend_settings: BackendSettings | None = None,
    ) -> None:
        self._configuration = configuration
        self._url, self._data_dir = database_url or configuration.database_url, data_dir
        self._backend = backend or configuration.backend
        self._backend_settings = {**configuration.backend_settings.get(self._backend, {}), **(backend_settings or {})}
        self._environment = environment or configuration.environment
        self._sources = [str(source) for source in handlers]
        self._work, self._settings, self._sweeps = (
            work,
            settings or configuration.worker,
            sweeps or configuration.sweeps,
        )
        self._registry = registry
        self._plans_by_target: dict[tuple[str, str | None], tuple[Plan, ...]] = {}

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
        self._ground: Ground = prepare(
            self._url,
            backend=self._backend,
            data_dir=self._data_dir,
            names=self._configuration.queue_names,
            backend_settings=self._backend_settings,
        )
        await self._ground.open()
        self._connection = Connection(self._ground.url, name="tasker app")
        self._engine = Engine(self._connection, self._ground.messaging, self._settings.rules)
        self.tasks = Tasks(self._engine)
        self.plans = PlanStore(self._connection)
        self.steps = Steps(self._engine, self.plans)
        self._submitter = Submitter(
            self._engine,
            self.plans,
            new_task_uuid,
            window=self._settings.window,
            context_limit_bytes=self._configuration.context_limit_bytes,
        )
        self.registry: HandlerRegistry = self._registry or load_handlers(self._sources)
        self._waiters = Waiters(self._connection, watches=self._work)
        self._runtime: Runtime | None = None
        if self._work:
            self._runtime = Runtime(
                self._ground.url,
                self._ground.messaging,
                self.registry,
                [],
                settings=self._settings,
                sweeps=self._sweeps,
                on_finished=lambda task, state: self._waiters.ended(task),
                on_elsewhere=lambda task: self._waiters.look_again(),
            )
            if self._ground.server is not None:
                await self._bury_the_dead()
            await self._runtime.start()

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Stop working (see `stop_working`) and let go of the database. May be called twice."""
        await self.stop_working(grace_seconds)
        await self._waiters.close()
        await self._connection.close()
        await self._ground.messaging.close()
        self._ground.close()

    async def stop_working(self, grace_seconds: float = 10.0) -> None:
        """Steps that run get `grace_seconds`, then they are given back; tasks can still be read."""
        if self._runtime is not None:
            await self._runtime.stop(grace_seconds)

    @property
    def database_url(self) -> str:
        """The database in use."""
        return self._ground.url

    async def submit(
        self,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        template: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Submitted:
        """Create a task and return at once.

        `target` is a template file, a folder with `workflow.yaml`, a compiled plan, or `namespace/name[:version]` of a
        registered template; `options` are those of `Request` (priority, tags, correlation_id ...). Handlers beside a
        template file are loaded. Raises `TemplateError`, `HandlerNotFound`, `InputInvalid`, `DuplicateTask`.
        """
        plan = await self.plan(target, template=template, environment=environment)
        request = Request(context or {}, idempotency_key=idempotency_key, **options)
        submitted = await self._submitter.submit(plan, request, force=True)
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
        """The report once the task has ended. Raises `TimeoutError` after `timeout` seconds; the task goes on."""
        await self.finished(task_uuid, timeout=timeout)
        return await self.tasks.report(task_uuid)

    async def finished(self, task_uuid: str, *, timeout: float | None = None) -> None:
        """Return once the task has ended, without reading its report. `timeout` as in `wait`."""
        async with asyncio.timeout(timeout):
            await self._waiters.wait(task_uuid)

    async def plan(
        self, target: str | Path | Plan, *, template: str | None = None, environment: str | None = None
    ) -> Plan:
        """The compiled plan of a target, ready to run: its handlers are loaded and its namespace is served."""
        plan = (
            target
            if isinstance(target, Plan)
            else await self._find(str(target), template, environment or self._environment)
        )
        if self._runtime is not None:
            require_handlers(self.registry, plan)
            await self._runtime.serve(plan.namespace)
        return plan

    async def plan_of(self, task_uuid: str) -> Plan:
        """The plan that a task is pinned to, ready to run like that of `plan`. Raises `TaskNotFound`."""
        plan = await self.plan(await self.plans.get(await self.tasks.template_id(task_uuid)))
        self._wake()
        return plan

    async def _find(self, target: str, template: str | None, environment: str | None) -> Plan:
        path = Path(target)
        if path.exists():
            plans = self._plans_by_target.get((target, environment))
            if plans is None:
                plans = self._plans_by_target[target, environment] = load_plans(
                    path, environment, self._configuration.retry
                )
                add_handlers_beside(self.registry, path)
            return _choose(plans, template, target)
        namespace, separator, rest = target.partition("/")
        if not separator or "/" in rest or rest.endswith((".yaml", ".yml")):
            raise UsageError(
                f"{target} does not exist",
                hint="expected a template file, a folder with workflow.yaml, or namespace/name",
            )
        name, _, version = rest.partition(":")
        return (await self.plans.find(namespace, name, version or None)).plan

    def _wake(self) -> None:
        if self._runtime is not None:
            self._runtime.wake()

    async def _bury_the_dead(self) -> None:
        """On the embedded server every worker is of this machine: end the leases of processes that are gone."""
        rows = await self._connection.execute(query("tasks", "dead_local_workers"), {"host": socket.gethostname()})
        for worker, pid in rows:
            if not _alive(pid):
                await self._engine.read("worker", {"action": "stop", "worker": worker, "lease_ms": 0})


def _choose(plans: Sequence[Plan], name: str | None, target: str) -> Plan:
    found = [plan for plan in plans if name in (None, plan.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(plan.name for plan in plans)
    problem = f"has no template {name!r}" if name else "holds several templates"
    raise UsageError(f"{target} {problem}; it has: {names}", hint="choose one with --template NAME")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

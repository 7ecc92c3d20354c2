"""Processes that serve until they are stopped: worker, orchestrator, or both in one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from tasker.app.assembly import breakers_of
from tasker.app.configured import UNCONFIGURED, Configured
from tasker.app.preparation import prepare, require_shared
from tasker.app.worker_assembly import worker_process
from tasker.dataclasses import dataclass
from tasker.db.startup_wait import StartupWait
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.plugins.contributions import rules_of
from tasker.plugins.host import plugins_of
from tasker.process.connections import ORCHESTRATOR, WORKER, Resources, plugin_connections
from tasker.process.http_settings import DEFAULT_ADDRESS, chosen_address
from tasker.process.observed import ProcessSnapshot
from tasker.process.own_tasks import run_guarded
from tasker.process.reloading import Reloading, ReloadSignals
from tasker.process.runtime import Runtime
from tasker.process.serving import GracefulWorker, ServedProcess, StopLimits, Title, serve
from tasker.process.status import StatusSignal, observed_worker, status_of
from tasker.process.stopping import interrupted_at_once, warn_short_grace
from tasker.resilience.breakers import Breakers
from tasker.services.workflows.handlers import load_handlers
from tasker.services.workflows.served import register_served
from tasker.settings.addresses import DEFAULT_BACKEND
from tasker.settings.http import Auth, OrchestrationWeb, WorkerWeb
from tasker.template.error_rules import parse_overrides


@dataclass(frozen=True, slots=True)
class Service:
    """Work and configuration of a serving process."""

    configuration: Configured = UNCONFIGURED
    data_dir: Path | None = None
    """Data folder of the embedded server, if the configuration names no database."""
    workflows: Sequence[Path] = ()
    """Template files or folders to register, with handlers to load and namespaces to serve."""
    handlers: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    shutdown_seconds: float | None = None
    """Time limit of an orderly stop; None: as configured."""
    force: bool = False
    """Accept changed content of a template whose version is already registered."""
    port: int | None = None
    """HTTP port of the process; None: as configured, by default no port."""
    reread: Callable[[], Configured] = lambda: UNCONFIGURED
    """Reads the configuration again."""
    hangups: ReloadSignals = field(default_factory=ReloadSignals)
    status: StatusSignal = field(default_factory=StatusSignal)

    @property
    def stop_limit(self) -> float:
        """Time limit of an orderly stop in seconds."""
        seconds = self.shutdown_seconds
        return self.configuration.shutdown_seconds if seconds is None else seconds


async def serve_worker(service: Service, ready: Callable[[str], None]) -> None:
    """Run a worker until SIGTERM or SIGINT; a second signal ends the process at once.

    `ready` gets a line with the served namespaces. Raises `UsageError` for a worker without a namespace, and for a
    messaging backend that other processes cannot reach.
    """
    _require_shared(service)
    breakers = breakers_of(service.configuration.breakers, service.configuration.plugins)
    resources = _resources(service, breakers)
    runtime, observed = await _worker(service, resources, breakers)
    title = Title("worker", runtime.worker.identity, runtime.namespaces)

    worker, port = GracefulWorker(runtime, service.stop_limit), service.configuration.worker_port
    connections = (*WORKER, *plugin_connections(runtime.plugins))
    server, title, change_port = _with_port(worker, title, service, observed, port, connections)

    def change(configured: Configured) -> None:
        change_port(configured.worker_port.auth)
        runtime.events.change(configured.worker.events)
        runtime.execution.runner.error_rules = parse_overrides(*configured.worker.execution.error_rules)
        runtime.limits.change(configured.worker.named_limits, runtime.worker.identity)
        breakers.change(configured.breakers)

    service.status.answer_with(partial(status_of, observed))
    await _serve(server, service, resources, title, ready, change, connections)


async def serve_orchestrator(service: Service, ready: Callable[[str], None]) -> None:
    """Run an orchestrator until SIGTERM or SIGINT; a second signal ends the process at once."""
    from tasker.app.orchestrator_assembly import orchestrator_process  # lazy import: a worker does not need it

    _require_shared(service)
    breakers = breakers_of(service.configuration.breakers, service.configuration.plugins)
    resources = _resources(service, breakers)
    limits = service.configuration
    orchestrator = orchestrator_process(
        resources.url,
        resources.messaging,
        settings=limits.worker,
        sweeps=limits.sweeps,
        events=limits.orchestrator_events,
        breakers=breakers,
        context_limit_bytes=limits.context_limit_bytes,
        depth_limits=limits.depth_limits,
        retry=limits.retry,
        plugins=plugins_of(limits.plugins),
        tenants=limits.tenants,
    )
    title = Title("orchestrator", orchestrator.identity)

    def change(configured: Configured) -> None:
        change_port(configured.http.auth)
        orchestrator.events.change(configured.orchestrator_events)
        orchestrator.limits.change(configured.worker.named_limits, orchestrator.identity)
        breakers.change(configured.breakers)

    observed = ProcessSnapshot("orchestrator", orchestrator, lambda: orchestrator.identity)
    port = limits.http.without("bind_address")  # that is the server's
    connections = (*ORCHESTRATOR, *plugin_connections(orchestrator.plugins))
    server, title, change_port = _with_port(orchestrator, title, service, observed, port, connections)
    service.status.answer_with(partial(status_of, observed))
    await _serve(server, service, resources, title, ready, change, connections)


def _with_port(
    server: ServedProcess,
    title: Title,
    service: Service,
    observed: ProcessSnapshot,
    port: OrchestrationWeb | WorkerWeb,
    connections: Sequence[str],
) -> tuple[ServedProcess, Title, Callable[[Auth], None]]:
    """Return the server, its title, and a function that applies new authentication settings.

    The server has an HTTP port if one is requested or configured.
    """
    if service.port is not None:
        host = (chosen_address(port) or DEFAULT_ADDRESS).rpartition(":")[0]
        port = port.replace(enabled=True, bind_address=f"{host}:{service.port}")
    if not port.enabled or chosen_address(port) is None:
        return server, title, lambda auth: None
    from tasker.app.http_serving import with_port  # lazy import: FastAPI is not needed without a port

    ported, where = with_port(server, observed, port, service.configuration, connections)
    return ported, title._replace(address=where), ported.change


def _resources(service: Service, breakers: Breakers) -> Resources:
    chosen = service.configuration
    with interrupted_at_once():
        return prepare(
            chosen.database_url,
            backend=chosen.backend,
            data_dir=service.data_dir,
            names=chosen.queue_names,
            backend_settings=chosen.backend_settings.get(chosen.backend),
            breakers=breakers,
            database=chosen.database,
            waits=True,
        )


async def _worker(service: Service, resources: Resources, breakers: Breakers) -> tuple[Runtime, ProcessSnapshot]:
    registry = load_handlers(service.handlers, service.configuration.importable)
    settings = service.configuration.worker
    runtime = worker_process(
        resources.url,
        resources.messaging,
        registry,
        (),
        settings=settings,
        sweeps=service.configuration.sweeps,
        breakers=breakers,
        consume=False,
        plugins=plugins_of(service.configuration.plugins),
    )
    wait_seconds = service.configuration.database.connect_wait_seconds
    waiting = StartupWait(runtime.connection, resources.url, wait_seconds)
    await runtime.limits.declare(connection=waiting)  # before templates that refer to them are registered
    plans = PlanStore(waiting, service.configuration.retry)
    served = await register_served(
        service.configuration,
        registry,
        plans,
        workflows=service.workflows,
        namespaces=service.namespaces,
        force=service.force,
        rules=rules_of(plugins_of(service.configuration.plugins)),
    )
    registry.load_installed()
    runtime.namespaces.extend(served.namespaces)
    if service.shutdown_seconds is None:  # an explicit limit is intentional and needs no warning
        warn_short_grace(served.plans, service.stop_limit)
    return runtime, observed_worker(runtime, registry, served.plans)


async def _serve(
    server: ServedProcess,
    service: Service,
    resources: Resources,
    title: Title,
    ready: Callable[[str], None],
    change: Callable[[Configured], None],
    connections: Sequence[str],
) -> None:
    chosen = service.configuration
    patience = StopLimits(service.stop_limit, chosen.database.connect_wait_seconds, chosen.worker.lease.lease_ms / 1000)
    service.hangups.answer(Reloading(chosen, service.reread, change))
    await serve(server, resources, patience, title, ready, connections)


def _require_shared(service: Service) -> None:
    chosen = service.configuration
    backend = load_backend(chosen.backend, chosen.backend_settings.get(chosen.backend, {}))
    hint = f"use --backend {DEFAULT_BACKEND} (the default), or tasker run / tasker dev"
    require_shared(backend, "other processes cannot reach it", hint)


Serve = Callable[[Service, Callable[[str], None]], Coroutine[Any, Any, None]]


def run(serve: Serve, service: Service, ready: Callable[[str], None]) -> None:
    """Serve in a new event loop."""
    service.hangups.listen()
    service.status.listen()
    run_guarded(serve(service, ready))

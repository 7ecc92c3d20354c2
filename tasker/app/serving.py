"""Processes that serve until they are told to stop: worker, orchestrator, or both in one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasker.app.assembly.orchestrator import orchestrator_process
from tasker.app.assembly.worker import worker_process
from tasker.app.bootstrap import prepare, require_shared
from tasker.app.configured import UNCONFIGURED, Configured
from tasker.contracts.messaging import DEFAULT_BACKEND
from tasker.db.awaited import Patient
from tasker.db.connection import Connection
from tasker.messaging.registry import load_backend
from tasker.process.capacity import ORCHESTRATOR, WORKER
from tasker.process.reloading import Hangups, Reloading
from tasker.process.resources import Resources
from tasker.process.runtime import Runtime
from tasker.process.serving import GracefulWorker, Patience, Server, serve
from tasker.process.stopping import interrupted_at_once, tell_short_grace
from tasker.process.system import SystemClock
from tasker.resilience.registry import Breakers
from tasker.services.authoring.handlers import load_handlers
from tasker.services.authoring.served import register_served
from tasker.services.engine.plans import PlanStore


@dataclass(frozen=True, slots=True)
class Service:
    """What a process serves, and on what."""

    configuration: Configured = UNCONFIGURED
    data_dir: Path | None = None
    """Of the embedded server, where the configuration names no database."""
    workflows: Sequence[Path] = ()
    """Template files or folders: registered, their handlers loaded, their namespaces served."""
    handlers: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    shutdown_seconds: float | None = None
    """How long an orderly stop may take, where it is not as the configuration says."""
    force: bool = False
    """Take the newest content of a template whose version is registered already."""
    reread: Callable[[], Configured] = lambda: UNCONFIGURED
    """Reads the configuration again."""
    hangups: Hangups = field(default_factory=Hangups)

    @property
    def stop_limit(self) -> float:
        """Seconds that an orderly stop may take."""
        given = self.shutdown_seconds
        return self.configuration.shutdown_seconds if given is None else given


async def serve_worker(service: Service, ready: Callable[[str], None]) -> None:
    """Run a worker until SIGTERM or SIGINT; a second signal ends the process at once.

    `ready` gets a line that says what is served. Raises `UsageError` for a worker without a namespace, and for the
    messaging backend that other processes cannot reach.
    """
    _require_shared(service)
    breakers = Breakers(SystemClock(), service.configuration.breakers)
    resources = _resources(service, breakers)
    runtime = await _worker(service, resources, breakers)
    title = f"worker {runtime.worker.identity} serves {', '.join(runtime.namespaces)}"

    def change(found: Configured) -> None:
        runtime.events.change(found.worker.events)
        breakers.change(found.breakers)

    await _serve(GracefulWorker(runtime, service.stop_limit), service, resources, title, ready, change, WORKER)


async def serve_orchestrator(service: Service, ready: Callable[[str], None]) -> None:
    """Run an orchestrator until SIGTERM or SIGINT; a second signal ends the process at once."""
    _require_shared(service)
    breakers = Breakers(SystemClock(), service.configuration.breakers)
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
    )
    title = f"orchestrator {orchestrator.identity}"

    def change(found: Configured) -> None:
        orchestrator.events.change(found.orchestrator_events)
        breakers.change(found.breakers)

    await _serve(orchestrator, service, resources, title, ready, change, ORCHESTRATOR)


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


async def _worker(service: Service, resources: Resources, breakers: Breakers) -> Runtime:
    registry = load_handlers(service.handlers, service.configuration.importable)
    wait_seconds = service.configuration.database.connect_wait_seconds
    connection = Patient(Connection(resources.url, name="tasker register"), resources.url, wait_seconds)
    plans = PlanStore(connection, service.configuration.retry)
    found = await register_served(
        service.configuration,
        registry,
        plans,
        workflows=service.workflows,
        namespaces=service.namespaces,
        force=service.force,
    )
    await connection.close()
    settings = service.configuration.worker
    if service.shutdown_seconds is None:  # who gives it by hand knows what it cuts off
        tell_short_grace(found.plans, service.stop_limit)
    return worker_process(
        resources.url,
        resources.messaging,
        registry,
        found.namespaces,
        settings=settings,
        sweeps=service.configuration.sweeps,
        breakers=breakers,
        consume=False,
    )


async def _serve(
    server: Server,
    service: Service,
    resources: Resources,
    title: str,
    ready: Callable[[str], None],
    change: Callable[[Configured], None],
    connections: Sequence[str],
) -> None:
    chosen = service.configuration
    patience = Patience(service.stop_limit, chosen.database.connect_wait_seconds, chosen.worker.lease_ms / 1000)
    service.hangups.answer(Reloading(chosen, service.reread, change))
    await serve(server, resources, patience, title, ready, connections)


def _require_shared(service: Service) -> None:
    chosen = service.configuration
    backend = load_backend(chosen.backend, chosen.backend_settings.get(chosen.backend, {}))
    hint = f"use --backend {DEFAULT_BACKEND} (the default), or tasker run / tasker dev"
    require_shared(backend, "other processes cannot reach it", hint)


Serve = Callable[[Service, Callable[[str], None]], Coroutine[Any, Any, None]]


def run(serve: Serve, service: Service, ready: Callable[[str], None]) -> None:
    """Serve in an event loop of its own."""
    service.hangups.listen()
    asyncio.run(serve(service, ready))

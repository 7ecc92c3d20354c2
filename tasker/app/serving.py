"""Processes that serve until they are told to stop: worker, orchestrator, or both in one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tasker.app.bootstrap import Ground, prepare
from tasker.app.configured import UNCONFIGURED, Configured
from tasker.app.orchestrator import Orchestrator
from tasker.app.runtime import Runtime
from tasker.db.connection import Connection
from tasker.errors import UsageError
from tasker.services.handlers import add_handlers_beside, load_handlers, require_handlers
from tasker.services.plans import PlanStore
from tasker.services.templates import load_plans

_log = logging.getLogger("tasker.process")


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
    grace_seconds: float = 30.0
    force: bool = False
    """Take the newest content of a template whose version is registered already."""


class Server(Protocol):
    """Something that serves."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End gracefully."""
        ...


async def serve_worker(service: Service, ready: Callable[[str], None]) -> None:
    """Run a worker until SIGTERM or SIGINT; a second signal ends the process at once.

    `ready` gets a line that says what is served. Raises `UsageError` for a worker without a namespace, and for the
    `memory` backend, which other processes cannot reach.
    """
    _refuse_memory(service)
    ground = _ground(service)
    runtime = await _worker(service, ground)

    class Graceful:
        start = staticmethod(runtime.start)

        @staticmethod
        async def stop() -> None:
            await runtime.stop(service.grace_seconds)

    served = ", ".join(runtime.namespaces)
    await _serve(Graceful(), ground, f"worker {runtime.worker.identity} serves {served}", ready)


async def serve_orchestrator(service: Service, ready: Callable[[str], None]) -> None:
    """Run an orchestrator until SIGTERM or SIGINT; a second signal ends the process at once."""
    _refuse_memory(service)
    ground = _ground(service)
    limits = service.configuration
    orchestrator = Orchestrator(ground.url, ground.messaging, settings=limits.worker, sweeps=limits.sweeps)
    await _serve(orchestrator, ground, f"orchestrator {orchestrator.identity}", ready)


def _ground(service: Service) -> Ground:
    chosen = service.configuration
    return prepare(
        chosen.database_url,
        backend=chosen.backend,
        data_dir=service.data_dir,
        names=chosen.queue_names,
        backend_settings=chosen.backend_settings.get(chosen.backend),
    )


async def _worker(service: Service, ground: Ground) -> Runtime:
    registry = load_handlers(service.handlers)
    connection = Connection(ground.url, name="tasker register")
    plans = PlanStore(connection)
    namespaces = list(service.namespaces)
    for path in service.workflows:
        add_handlers_beside(registry, path)
        for plan in load_plans(path, service.configuration.environment, service.configuration.retry):
            require_handlers(registry, plan)
            await plans.register(plan, force=service.force)
            namespaces.append(plan.namespace)
    await connection.close()
    if not namespaces:
        raise UsageError(
            "the worker serves nothing", hint="name workflows (tasker worker workflows/orders) or --namespace NAME"
        )
    return Runtime(
        ground.url,
        ground.messaging,
        registry,
        sorted(set(namespaces)),
        settings=service.configuration.worker,
        sweeps=service.configuration.sweeps,
        consume=False,
    )


async def _serve(server: Server, ground: Ground, title: str, ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, stop)
    await ground.messaging.open()
    try:
        await server.start()
        ready(title)
        await stop.wait()
        _log.info("stopping %s", title)
        await server.stop()
    finally:
        await ground.messaging.close()
        ground.close()


def _on_signal(stop: asyncio.Event) -> None:
    if stop.is_set():
        raise SystemExit(130)
    stop.set()


def _refuse_memory(service: Service) -> None:
    if service.configuration.backend == "memory":
        raise UsageError(
            "the memory backend lives inside one process; other processes cannot reach it",
            hint="use --backend pgmq (the default), or tasker run / tasker dev",
        )


Serve = Callable[[Service, Callable[[str], None]], Coroutine[Any, Any, None]]


def run(serve: Serve, service: Service, ready: Callable[[str], None]) -> None:
    """Serve in an event loop of its own."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(service, ready))

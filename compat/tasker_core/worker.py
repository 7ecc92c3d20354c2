"""Worker of a process as one object."""

from __future__ import annotations

from typing import ClassVar

from tasker_core.bootstrap import bootstrap_worker, is_worker_running, stop_worker
from tasker_core.event_bridge import EventBridge
from tasker_core.handler import HandlerRegistry
from tasker_core.logging import log_warn
from tasker_core.types.worker import BootstrapConfig, BootstrapResult

__all__ = ["Worker"]


class Worker:
    """Running worker; `Worker.start()` creates it, `stop()` or the end of a `with` block ends it."""

    _instance: ClassVar[Worker | None] = None

    def __init__(self) -> None:
        self._result: BootstrapResult | None = None

    @classmethod
    def start(cls, handler_packages: list[str] | None = None, config: BootstrapConfig | None = None) -> Worker:
        """Load the handlers of these packages and start a worker, or return the running one.

        The handlers that templates name are loaded as well, and the event bridge is started. Raises `RuntimeError` if
        the worker cannot start.
        """
        if (running := cls.instance()) is not None:
            log_warn("a worker runs in this process already")
            return running
        registry = HandlerRegistry.instance()
        for package in handler_packages or ():
            registry.discover_handlers(package)
        worker = cls()
        worker._result = bootstrap_worker(config)
        EventBridge.instance().start()
        Worker._instance = worker
        return worker

    def stop(self) -> None:
        """Stop the worker; running steps have ten seconds to end, then they are released. May be called twice."""
        if self.is_running:
            stop_worker()
            EventBridge.instance().stop()
            Worker._instance = None

    @classmethod
    def instance(cls) -> Worker | None:
        """Return the running worker, or None."""
        worker = Worker._instance
        return worker if worker is not None and worker.is_running else None

    @classmethod
    def reset_instance(cls) -> None:
        """Stop and remove the worker."""
        if Worker._instance is not None:
            Worker._instance.stop()
        Worker._instance = None

    @property
    def worker_id(self) -> str:
        """Identifier of the worker; empty before it was started."""
        return self._result.worker_id if self._result else ""

    @property
    def is_running(self) -> bool:
        """True between `start` and `stop`."""
        return Worker._instance is self and is_worker_running()

    @property
    def bootstrap_result(self) -> BootstrapResult:
        """Result of the start. Raises `RuntimeError` for a worker that was not started."""
        if self._result is None:
            raise RuntimeError("this worker was never started: use Worker.start()")
        return self._result

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

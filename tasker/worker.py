"""The worker of a process as one object, under its public name."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import ClassVar

from tasker.bootstrap import bootstrap_worker, is_worker_running, stop_worker
from tasker.errors import WorkerAlreadyRunningError, WorkerNotInitializedError
from tasker.event_bridge import EventBridge
from tasker.handlers.registry.discovery import handlers_in_package
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.handlers.worker_models import BootstrapConfig, BootstrapResult


class Worker:
    """Running worker, at most one in a process; `Worker.start()` creates it, `stop()` ends it."""

    _instance: ClassVar[Worker | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._result: BootstrapResult | None = None

    @classmethod
    def start(cls, handler_packages: list[str] | None = None, config: BootstrapConfig | None = None) -> Worker:
        """Load the handlers of these packages and start to work; return at once.

        The event bridge is started as well. Raises `HandlerLoadError`, and the errors of `bootstrap_worker`.
        """
        with cls._lock:
            if is_worker_running():
                raise WorkerAlreadyRunningError("a worker runs in this process already", hint="stop it first")
            _load_handlers(handler_packages or ())
            worker = cls()
            worker._result = bootstrap_worker(config)
            EventBridge.instance().start()
            cls._instance = worker
            return worker

    def stop(self) -> None:
        """Stop working; running steps get ten seconds, then they are released. May be called twice."""
        if self._result is not None and type(self)._instance is self:
            stop_worker()
            EventBridge.instance().stop()
            type(self)._instance = None

    @classmethod
    def instance(cls) -> Worker | None:
        """Return the running worker, or None."""
        return cls._instance

    @classmethod
    def reset_instance(cls) -> None:
        """Stop and discard the worker."""
        if (worker := cls._instance) is not None:
            worker.stop()

    @property
    def worker_id(self) -> str:
        """The configured name of the worker, else its id in the history of steps."""
        return self.bootstrap_result.worker_id

    @property
    def is_running(self) -> bool:
        """True between `start` and `stop`."""
        return type(self)._instance is self and is_worker_running()

    @property
    def bootstrap_result(self) -> BootstrapResult:
        """The result of starting the worker. Raises `WorkerNotInitializedError` for a worker made without `start`."""
        if self._result is None:
            raise WorkerNotInitializedError("this worker was never started", hint="use Worker.start()")
        return self._result


def _load_handlers(packages: Sequence[str]) -> None:
    """Load all packages at once, so that two of them with the same handler name are refused."""
    HandlerRegistry.instance().add([handler for package in packages for handler in handlers_in_package(package)])

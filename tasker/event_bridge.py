"""Events inside a worker's process: who wants to know subscribes."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tasker.handler import HandlerRegistry
from tasker.registry.shared_instance import SharedInstance
from tasker.types import FfiStepEvent

log = logging.getLogger("tasker.event_bridge")

Listener = Callable[..., Any]


class EventNames:
    """The events there are, with what a listener receives in `EventBridge.event_schema`."""

    STEP_EXECUTION_RECEIVED = "step.execution.received"
    STEP_COMPLETION_SENT = "step.completion.sent"
    STEP_CHECKPOINT_YIELD = "step.checkpoint_yield.sent"
    HANDLER_REGISTERED = "handler.registered"
    HANDLER_ERROR = "handler.error"
    POLLER_METRICS = "poller.metrics"
    POLLER_ERROR = "poller.error"


SCHEMA = {
    EventNames.STEP_EXECUTION_RECEIVED: "FfiStepEvent",
    EventNames.STEP_COMPLETION_SENT: "StepExecutionResult",
    EventNames.STEP_CHECKPOINT_YIELD: "step_uuid, CheckpointYield",
    EventNames.HANDLER_REGISTERED: "name, handler class",
    EventNames.HANDLER_ERROR: "FfiStepEvent, exception",
    EventNames.POLLER_METRICS: "FfiDispatchMetrics",
    EventNames.POLLER_ERROR: "exception",
}


class AnnouncedStep(FfiStepEvent):
    """A step that this process's worker runs itself: there to be looked at, not to be run."""


class EventBridge(SharedInstance):
    """Delivers events to listeners, in order, in the thread that publishes.

    Delivers nothing before `start` and after `stop`. A listener that raises is logged and does not stop the others.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = defaultdict(list)
        self._once: dict[str, list[Listener]] = defaultdict(list)
        self._active = False

    @classmethod
    def reset_instance(cls) -> None:
        """Stop and forget the shared bridge."""
        if (bridge := cls._forget_shared()) is not None:
            bridge.stop()

    def start(self) -> None:
        """Begin to deliver; from now on registrations of handlers are published too."""
        if not self._active:
            self._active = True
            HandlerRegistry.listeners.append(self._handler_registered)

    def stop(self) -> None:
        """Stop delivering and forget every listener."""
        if self._active:
            self._active = False
            HandlerRegistry.listeners.remove(self._handler_registered)
        self._listeners.clear()
        self._once.clear()

    def subscribe(self, event: str, handler: Listener) -> None:
        """Call `handler` at every such event."""
        self._listeners[event].append(handler)

    def subscribe_once(self, event: str, handler: Listener) -> None:
        """Call `handler` at the next such event only."""
        self._once[event].append(handler)

    def unsubscribe(self, event: str, handler: Listener) -> None:
        """Forget a listener; nothing happens when it is unknown."""
        for group in (self._listeners[event], self._once[event]):
            if handler in group:
                group.remove(handler)

    def publish(self, event: str, *args: Any, **kwargs: Any) -> None:
        """Deliver an event. Never raises."""
        if not self._active:
            return
        listeners = [*self._listeners[event], *self._once.pop(event, [])]
        for listener in listeners:
            try:
                listener(*args, **kwargs)
            except Exception:
                log.exception("a listener of %s failed", event)

    def listeners(self, event: str) -> list[Listener]:
        """Who would be called at such an event."""
        return [*self._listeners[event], *self._once[event]]

    def listener_count(self, event: str) -> int:
        """How many would be called."""
        return len(self.listeners(event))

    @property
    def is_active(self) -> bool:
        """True between `start` and `stop`."""
        return self._active

    @property
    def event_schema(self) -> dict[str, str]:
        """Every event with what its listeners receive."""
        return dict(SCHEMA)

    def _handler_registered(self, name: str, handler: Any) -> None:
        self.publish(EventNames.HANDLER_REGISTERED, name, handler)

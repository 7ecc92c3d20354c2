"""Events inside a worker process and the bridge that delivers them to subscribers."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tasker.execution.attempt.attempt import Checkpoint
from tasker.handlers.events.registries import SharedInstance
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.handlers.step_handler import CheckpointYield
from tasker_core.types.step_event import FfiStepEvent

__all__ = ["EventBridge", "EventNames"]

log = logging.getLogger("tasker.event_bridge")

Listener = Callable[..., Any]


class EventNames:
    """Names of the events; `EventBridge.event_schema` lists the arguments of their listeners."""

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
    EventNames.STEP_CHECKPOINT_YIELD: "dict[str, Any]",
    EventNames.HANDLER_REGISTERED: "tuple[str, type]",
    EventNames.HANDLER_ERROR: "tuple[FfiStepEvent, Exception]",
    EventNames.POLLER_METRICS: "FfiDispatchMetrics",
    EventNames.POLLER_ERROR: "Exception",
}


class AnnouncedStep(FfiStepEvent):
    """A step that the worker of this process runs itself: listeners may observe it but must not run it."""


def checkpoint_event(step_uuid: str, position: CheckpointYield | Checkpoint) -> dict[str, Any]:
    """Return a checkpoint as listeners receive it."""
    names = ("cursor", "items_processed", "accumulated_results")
    return {"step_uuid": step_uuid, **{name: getattr(position, name) for name in names}}


class EventBridge(SharedInstance):
    """Delivers events to listeners, in order, in the thread that publishes.

    Nothing is delivered before `start` and after `stop`. A listener that raises is logged and does not stop the others.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = defaultdict(list)
        self._once: dict[str, list[Listener]] = defaultdict(list)
        self._active = False

    @classmethod
    def reset_instance(cls) -> None:
        """Stop and discard the shared bridge."""
        if (bridge := cls._forget_shared()) is not None:
            bridge.stop()

    def start(self) -> None:
        """Start to deliver events; registrations of handlers are published too from then on."""
        if not self._active:
            self._active = True
            HandlerRegistry.listeners.append(self._handler_registered)

    def stop(self) -> None:
        """Stop delivering and remove every listener; does nothing to a bridge that was not started."""
        if self._active:
            self._active = False
            HandlerRegistry.listeners.remove(self._handler_registered)
            self._listeners.clear()
            self._once.clear()

    def subscribe(self, event: str, handler: Listener) -> None:
        """Call `handler` for every event of this name."""
        self._listeners[event].append(handler)

    def subscribe_once(self, event: str, handler: Listener) -> None:
        """Call `handler` for the next event of this name only."""
        self._once[event].append(handler)

    def unsubscribe(self, event: str, handler: Listener) -> None:
        """Remove a listener; an unknown one is ignored."""
        for group in (self._listeners[event], self._once[event]):
            if handler in group:
                group.remove(handler)

    def publish(self, event: str, *args: Any, **kwargs: Any) -> None:
        """Deliver an event to its listeners. Never raises."""
        if not self._active:
            return
        listeners = [*self._listeners[event], *self._once.pop(event, [])]
        for listener in listeners:
            try:
                listener(*args, **kwargs)
            except Exception:
                log.exception("a listener of %s failed", event)

    def listeners(self, event: str) -> list[Listener]:
        """Return the listeners of an event, those for one delivery included."""
        return [*self._listeners[event], *self._once[event]]

    def listener_count(self, event: str) -> int:
        """Return the number of listeners of an event."""
        return len(self.listeners(event))

    @property
    def is_active(self) -> bool:
        """True between `start` and `stop`."""
        return self._active

    @property
    def event_schema(self) -> dict[str, str]:
        """Every event name with the arguments of its listeners."""
        return dict(SCHEMA)

    def _handler_registered(self, name: str, handler: Any) -> None:
        self.publish(EventNames.HANDLER_REGISTERED, name, handler)

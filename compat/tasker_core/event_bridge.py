"""Events within a worker's process, for subscribers."""

from __future__ import annotations

from typing import Any, ClassVar

from tasker.event_bridge import EventBridge as EngineBridge
from tasker.event_bridge import EventNames, Listener

__all__ = ["EventBridge", "EventNames"]

SCHEMA = {
    EventNames.STEP_EXECUTION_RECEIVED: "FfiStepEvent",
    EventNames.STEP_COMPLETION_SENT: "StepExecutionResult",
    EventNames.STEP_CHECKPOINT_YIELD: "dict[str, Any]",
    EventNames.HANDLER_REGISTERED: "tuple[str, type]",
    EventNames.HANDLER_ERROR: "tuple[FfiStepEvent, Exception]",
    EventNames.POLLER_METRICS: "FfiDispatchMetrics",
    EventNames.POLLER_ERROR: "Exception",
}


class CheckpointListener:
    """Listener that receives a checkpoint as a mapping; equal to the wrapped listener."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener

    def __call__(self, step: Any, position: Any = None) -> Any:
        """Call the listener with a step and its position (the engine's form), or with the mapping."""
        if position is None:
            return self.listener(step)
        names = ("cursor", "items_processed", "accumulated_results")
        return self.listener({"step_uuid": str(step), **{name: getattr(position, name) for name in names}})

    def __eq__(self, other: object) -> bool:
        return self.listener == (other.listener if isinstance(other, CheckpointListener) else other)

    def __hash__(self) -> int:
        return hash(self.listener)


class EventBridge:
    """Delivery of events to listeners, in order; `instance()` receives the events of this process's worker.

    Delivers nothing before `start`; `stop` removes every listener. An error of a listener is logged, and the others are
    called.
    """

    _shared: ClassVar[EventBridge | None] = None

    def __init__(self) -> None:
        self._bridge = EngineBridge()

    @classmethod
    def instance(cls) -> EventBridge:
        """Return the shared bridge of the application."""
        bridge = EngineBridge.instance()
        shared = EventBridge._shared
        if shared is None or shared._bridge is not bridge:
            shared = EventBridge._shared = cls()
            shared._bridge = bridge
        return shared

    @classmethod
    def reset_instance(cls) -> None:
        """Stop and remove the shared bridge."""
        EngineBridge.reset_instance()
        EventBridge._shared = None

    def start(self) -> None:
        """Start the delivery."""
        self._bridge.start()

    def stop(self) -> None:
        """Stop the delivery and remove every listener."""
        if self.is_active:
            self._bridge.stop()

    def subscribe(self, event: str, handler: Listener) -> None:
        """Call `handler` for every such event."""
        self._bridge.subscribe(event, _told(event, handler))

    def subscribe_once(self, event: str, handler: Listener) -> None:
        """Call `handler` for the next such event only."""
        self._bridge.subscribe_once(event, _told(event, handler))

    def unsubscribe(self, event: str, handler: Listener) -> None:
        """Remove a listener; does nothing if it is unknown."""
        self._bridge.unsubscribe(event, handler)

    def publish(self, event: str, *args: Any, **kwargs: Any) -> None:
        """Deliver an event. Never raises an error."""
        self._bridge.publish(event, *args, **kwargs)

    def listener_count(self, event: str) -> int:
        """Return the number of listeners of an event."""
        return len(self.listeners(event))

    def listeners(self, event: str) -> list[Listener]:
        """Return the listeners of an event."""
        registered = self._bridge.listeners(event)
        return [known.listener if isinstance(known, CheckpointListener) else known for known in registered]

    @property
    def is_active(self) -> bool:
        """True between `start` and `stop`."""
        return self._bridge.is_active

    @property
    def event_schema(self) -> dict[str, str]:
        """Every event with the arguments of its listeners."""
        return dict(SCHEMA)


def _told(event: str, handler: Listener) -> Listener:
    return CheckpointListener(handler) if event == EventNames.STEP_CHECKPOINT_YIELD else handler

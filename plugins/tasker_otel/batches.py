"""What waits to be sent, by the queue of the SDK: counted, and told in the log of Tasker when the receiver is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from queue import SimpleQueue
from threading import Event, Thread, get_ident
from typing import Any, Protocol

from opentelemetry.sdk.trace.export import SpanExporter

_log = logging.getLogger("tasker.plugins.otel")
sending: ContextVar[bool] = ContextVar("tasker_otel_sending", default=False)
"""What is logged while this is set is about the sending itself. Were it sent, that would be logged again."""


class SdkQueue(Protocol):
    """A queue of the SDK, with a thread that gives batches to an exporter."""

    def force_flush(self, timeout_millis: int = ...) -> bool:
        """Give it all."""


class Batches:
    """A queue of the SDK that is kept from running over: it would push out the oldest, and count nothing.

    `queue_of` makes it for an exporter, `noun` is what waits in it ("span"), `capacity` how many at most; `where` names
    the receiver, `heard` the logger by which the exporter says what goes wrong.
    """

    def __init__(
        self, noun: str, exporter: Any, where: str, heard: str, queue_of: Callable[[Any], SdkQueue], capacity: int
    ) -> None:
        self.noun, self.where, self._capacity = noun, where, capacity
        self._told = _Told(noun, exporter, where, logging.getLogger(heard))
        self._queue = queue_of(self._told)
        self._accepted = self._dropped = 0
        self._flushes: SimpleQueue[Event] = SimpleQueue()
        # begun now: a process that ends begins no threads any more
        Thread(target=self._flushing, name=f"tasker {noun}s", daemon=True).start()

    @property
    def lost(self) -> int:
        """How many were lost since the start."""
        return self._dropped + self._told.failed

    def has_room(self) -> bool:
        """Whether one more may be given to the queue, which is counted. One thread at a time may ask."""
        if self._accepted - self._told.taken >= self._capacity:
            self._dropped += 1
            return False
        self._accepted += 1
        return True

    def flush(self, seconds: float) -> None:
        """Wait until all is sent, at most so long; what is left is told in the log."""
        self._flushes.put(over := Event())
        over.wait(seconds)  # the SDK's own limit does nothing yet
        left = self._accepted - self._told.done
        if left or self.lost:
            told = "%ss_lost receiver=%s not_sent=%s dropped=%s"
            _log.warning(told, self.noun, self.where, left, self.lost)

    def _flushing(self) -> None:
        while True:
            over = self._flushes.get()
            self._queue.force_flush()
            over.set()


class _Told(SpanExporter):
    """Counts what an exporter does, and tells once that it fails, instead of what it says of each of its requests.

    The SDK uses it from one thread at a time. `taken` are those that left the queue, `done` those whose end is known.
    An exporter of log lines has the same methods.
    """

    def __init__(self, noun: str, exporter: Any, where: str, heard: logging.Logger) -> None:
        self._noun, self._exporter, self._where, self._heard = noun, exporter, where, heard
        self._is_down = False
        self.taken = self.done = self.failed = 0

    def export(self, batch: Sequence[Any]) -> Any:
        """As the exporter does; None where it raises."""
        self.taken += len(batch)
        heard, token = _Heard(), sending.set(True)
        self._heard.addFilter(heard)
        found = None
        try:
            found = self._exporter.export(batch)
        except Exception as error:  # a defect of one batch must not be told with each of them
            heard.last = repr(error)
        finally:
            self._heard.removeFilter(heard)
            sending.reset(token)
        self._tell(found is not None and found.name == "SUCCESS", len(batch), heard.last)
        self.done += len(batch)
        return found

    def _tell(self, is_up: bool, count: int, reason: str) -> None:
        self.failed += 0 if is_up else count
        if is_up and self._is_down:
            _log.warning("%s_receiver_up receiver=%s lost=%s", self._noun, self._where, self.failed)
        elif not is_up and not self._is_down:
            told = "%s_receiver_down receiver=%s lost=%s reason=%s"
            _log.warning(told, self._noun, self._where, count, reason)
        self._is_down = not is_up

    def shutdown(self) -> None:
        """As the exporter does."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As the exporter does."""
        return bool(self._exporter.force_flush(timeout_millis))


class _Heard(logging.Filter):
    """Takes what the SDK says in this thread out of the log, and keeps the first: it names the reason."""

    def __init__(self) -> None:
        super().__init__()
        self._thread, self.last = get_ident(), ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether others are to hear it."""
        if record.thread != self._thread:
            return True
        self.last = self.last or record.getMessage()
        return False

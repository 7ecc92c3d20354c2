"""Buffers of spans and log lines over the SDK's queue, which count losses and log an outage of the receiver once."""

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
"""True while a thread sends. Log records of the sending itself are not sent, because each would cause another one."""


class SdkQueue(Protocol):
    """Queue of the SDK, with a thread that passes batches to an exporter."""

    def force_flush(self, timeout_millis: int = ...) -> bool:
        """Pass all batches to the exporter."""


class Batches:
    """Queue of the SDK with a limit, because a full one would drop the oldest items without counting them.

    `queue_of` creates it for an exporter, `noun` is the kind of its items ("span"), `capacity` their maximum number;
    `where` is the receiver, `heard` the logger to which the exporter reports errors.
    """

    def __init__(
        self, noun: str, exporter: Any, where: str, heard: str, queue_of: Callable[[Any], SdkQueue], capacity: int
    ) -> None:
        self.noun, self.where, self._capacity = noun, where, capacity
        self._told = _Told(noun, exporter, where, logging.getLogger(heard))
        self._queue = queue_of(self._told)
        self._accepted = self._dropped = 0
        self._flushes: SimpleQueue[Event] = SimpleQueue()
        # Started now, because a process that ends cannot start threads.
        Thread(target=self._flushing, name=f"tasker {noun}s", daemon=True).start()

    @property
    def lost(self) -> int:
        """Number of items lost since the start."""
        return self._dropped + self._told.failed

    def has_room(self) -> bool:
        """Return True if the queue accepts one more item, and count it. One thread at a time may call it."""
        if self._accepted - self._told.taken >= self._capacity:
            self._dropped += 1
            return False
        self._accepted += 1
        return True

    def flush(self, seconds: float) -> None:
        """Wait until all items are sent, at most `seconds`; log the number of unsent ones."""
        self._flushes.put(over := Event())
        over.wait(seconds)  # the SDK's own timeout has no effect yet
        left = self._accepted - self._told.done
        if left or self.lost:
            message = "%ss_lost receiver=%s not_sent=%s dropped=%s"
            _log.warning(message, self.noun, self.where, left, self.lost)

    def _flushing(self) -> None:
        while True:
            over = self._flushes.get()
            self._queue.force_flush()
            over.set()


class _Told(SpanExporter):
    """Exporter that counts, and that logs one failure of the wrapped exporter instead of one for each request.

    The SDK uses it from one thread at a time. `taken` counts the items that left the queue, `done` those whose outcome
    is known. An exporter of log lines has the same methods.
    """

    def __init__(self, noun: str, exporter: Any, where: str, heard: logging.Logger) -> None:
        self._noun, self._exporter, self._where, self._heard = noun, exporter, where, heard
        self._is_down = False
        self.taken = self.done = self.failed = 0

    def export(self, batch: Sequence[Any]) -> Any:
        """Export a batch with the wrapped exporter; return None if that raises an error."""
        self.taken += len(batch)
        log_filter, token = _Heard(), sending.set(True)
        self._heard.addFilter(log_filter)
        result = None
        try:
            result = self._exporter.export(batch)
        except Exception as error:  # a defect of one batch must not be logged with each of them
            log_filter.last = repr(error)
        finally:
            self._heard.removeFilter(log_filter)
            sending.reset(token)
        self._log_state(result is not None and result.name == "SUCCESS", len(batch), log_filter.last)
        self.done += len(batch)
        return result

    def _log_state(self, is_up: bool, count: int, reason: str) -> None:
        self.failed += 0 if is_up else count
        if is_up and self._is_down:
            _log.warning("%s_receiver_up receiver=%s lost=%s", self._noun, self._where, self.failed)
        elif not is_up and not self._is_down:
            message = "%s_receiver_down receiver=%s lost=%s reason=%s"
            _log.warning(message, self._noun, self._where, count, reason)
        self._is_down = not is_up

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))


class _Heard(logging.Filter):
    """Filter that removes the SDK's records of this thread from the log, and keeps the first one as the reason."""

    def __init__(self) -> None:
        super().__init__()
        self._thread, self.last = get_ident(), ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for records of other threads."""
        if record.thread != self._thread:
            return True
        self.last = self.last or record.getMessage()
        return False

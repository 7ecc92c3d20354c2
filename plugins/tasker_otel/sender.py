"""Sends spans in batches, in a thread of its own: nothing that the plugin hears waits for the receiver."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from importlib.metadata import version
from threading import Condition, Thread

from tasker_otel.receiver import Receiver, Refused, Unreachable
from tasker_otel.table import OtelTable, pairs
from tasker_otel.wire import request, resource

BATCH = 512
"""Spans in a request at most."""
CAPACITY = 10_000
"""Spans that wait at most, some five megabytes."""
COLLECTING_SECONDS = 1.0
"""How long the first span of a batch waits for others."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two requests while the receiver takes none."""
_log = logging.getLogger("tasker.plugins.otel")


def sender_of(settings: OtelTable) -> Sender:
    """A sender to the receiver of these settings."""
    receiver = Receiver(settings)
    told = {**dict(pairs(settings.resource_attributes)), "service.name": settings.service_name}
    who = resource(told.items(), "tasker", version("tasker-engine"))
    return Sender(lambda spans: receiver.post(request(who, spans)), receiver.url)


class Sender:
    """Keeps spans until `post` has taken them; what does not fit is lost, and counted.

    `post` raises `Refused` or `Unreachable` for spans that it does not take; `where` names the receiver. The thread
    begins with the first span. `put` never waits.
    """

    def __init__(self, post: Callable[[Sequence[bytes]], None], where: str) -> None:
        self._post, self._where = post, where
        self._waiting: deque[bytes] = deque()
        self._changed = Condition()
        self._in_hand = 0
        self._hurries = self._is_down = False
        self._thread: Thread | None = None
        self.lost = 0
        """Spans that were lost since the start."""

    def put(self, span: bytes) -> None:
        """Send it with the next batch."""
        with self._changed:
            if len(self._waiting) >= CAPACITY:
                self.lost += 1
                return
            self._waiting.append(span)
            if len(self._waiting) in (1, BATCH):
                self._changed.notify_all()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="tasker spans", daemon=True)
            self._thread.start()

    def flush(self, seconds: float) -> None:
        """Wait until all is sent, at most so long; what is left is told in the log."""
        with self._changed:
            self._hurries = True
            self._changed.notify_all()
            self._changed.wait_for(self._is_idle, seconds)
            self._hurries = False
            left = len(self._waiting) + self._in_hand
        if left or self.lost:
            _log.warning("spans_lost receiver=%s not_sent=%s dropped=%s", self._where, left, self.lost)

    def _is_idle(self) -> bool:
        return not self._waiting and not self._in_hand

    def _run(self) -> None:
        while True:
            batch = self._next()
            try:
                self._bring(batch)
            except Exception as error:  # a defect of ours must not end the thread
                self._down(error, lost=len(batch))
            with self._changed:
                self._in_hand = 0
                self._changed.notify_all()

    def _next(self) -> list[bytes]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting)
            self._changed.wait_for(lambda: self._hurries or len(self._waiting) >= BATCH, COLLECTING_SECONDS)
            self._in_hand = min(BATCH, len(self._waiting))
            return [self._waiting.popleft() for _ in range(self._in_hand)]

    def _bring(self, batch: Sequence[bytes]) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                self._post(batch)
            except Refused as error:
                return self._down(error, lost=len(batch))
            except Unreachable as error:
                self._down(error)
            else:
                return self._up()
            with self._changed:
                self._changed.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _down(self, error: Exception, lost: int = 0) -> None:
        """Told once, until it takes spans again."""
        self.lost += lost
        if not self._is_down:
            self._is_down = True
            told = "span_receiver_down receiver=%s reason=%s; beyond %s spans that wait they are lost"
            _log.warning(told, self._where, error, CAPACITY)

    def _up(self) -> None:
        if self._is_down:
            self._is_down = False
            _log.warning("span_receiver_up receiver=%s lost=%s", self._where, self.lost)

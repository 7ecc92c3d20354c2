"""Reporter with a client of its own: the application's use of Sentry is not affected."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

import sentry_sdk
from sentry_sdk.utils import BadDsn

from tasker.plugins.hook_arguments import AttemptEnded, TaskFinished
from tasker_sentry.events import Event, dead_letter, failure, is_final
from tasker_sentry.table import SentryTable

FLUSH_SECONDS = 3.0
REMEMBERED_TASKS = 1000


class Reporter:
    """Reporter of failures and dead tasks. One thread at a time may use it."""

    def __init__(self, settings: SentryTable, clock: Callable[[], float] = time.monotonic) -> None:
        """Create the client. Raises `ValueError` for a missing or invalid DSN."""
        if not settings.dsn:
            raise ValueError("it needs a DSN: set plugins.sentry.dsn, or SENTRY_DSN")
        try:
            self._client = sentry_sdk.Client(
                dsn=settings.dsn,
                environment=settings.environment,
                default_integrations=False,
                include_local_variables=False,
                auto_session_tracking=False,
                max_breadcrumbs=0,
            )
        except BadDsn as error:
            raise ValueError(f"plugins.sentry.dsn is no DSN: {error}") from None
        self._settings, self._clock = settings, clock
        self._templates: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._minute, self._sent = clock(), 0

    def failed(self, ended: AttemptEnded) -> None:
        """Report a failure; one that is retried only if the settings include it."""
        attempt = ended.attempt
        self._templates[attempt.task_uuid] = (attempt.namespace, attempt.template)
        if len(self._templates) > REMEMBERED_TASKS:
            self._templates.popitem(last=False)
        if self._settings.retried or is_final(ended):
            self._send(failure(ended, messages=self._settings.messages))

    def dead(self, task: TaskFinished) -> None:
        """Report a task that ended in error."""
        self._send(dead_letter(task, self._templates.pop(task.task_uuid, None)))

    def flush(self) -> None:
        """Wait until all events are sent, at most `FLUSH_SECONDS`."""
        self._client.flush(timeout=FLUSH_SECONDS)

    def _send(self, event: Event) -> None:
        if self._clock() - self._minute >= 60:
            self._minute, self._sent = self._clock(), 0
        self._sent += 1
        if self._sent <= self._settings.events_per_minute:
            self._client.capture_event(event)  # type: ignore[arg-type]  # of the SDK's own type, which is a plain mapping

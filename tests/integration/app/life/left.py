"""What an app leaves behind when it has ended: nothing."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

from tests.integration.app.program import value
from tests.support.waiting import until

SESSIONS = (
    "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'tasker%'"
)
WORKERS = "select count(*) from tasker.workers where stopped_at is null"


def nothing_is_open(database_url: str, before: set[asyncio.Task[Any]]) -> None:
    """No task runs that did not run `before`, and no session is left; the server sees an end a little later."""
    assert asyncio.all_tasks() == before
    no_session_is_open(database_url)


def no_session_is_open(database_url: str) -> None:
    gc.collect()  # a connection that was cancelled while it was opened ends so
    until(lambda: value(database_url, SESSIONS) == 0, "the sessions have ended")


def leases() -> list[str]:
    """The threads of this process that renew a lease, or watch over it."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("tasker-lease")]

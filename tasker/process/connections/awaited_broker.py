"""Waiting, at the start of a process, for a broker that is not there yet."""

from __future__ import annotations

from tasker.db.awaited import with_servers
from tasker.messaging.service import MessagingService


async def open_broker(messaging: MessagingService, wait_seconds: float) -> None:
    """Connect; what does not answer is tried again with growing pauses for `wait_seconds`, and the log says so.

    A backend whose queues live in the database connects when it is used: the schema, which brings its functions, is up
    to date by then.
    Raises `BackendUnavailable`: after that time, and at once for what waiting does not mend (a wrong password).
    """
    if messaging.capabilities.transactional:
        return
    hint = f"start the broker, or check the setting common.queues.{messaging.provider_name()}.url"
    await with_servers(f"the broker ({messaging.provider_name()})", wait_seconds, hint, messaging.open)

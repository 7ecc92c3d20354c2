"""Connection to a broker that may not be up yet when a process starts."""

from __future__ import annotations

from tasker.db.awaited import with_servers
from tasker.messaging.service import MessagingService


async def open_broker(messaging: MessagingService, wait_seconds: float) -> None:
    """Connect to the broker; retry with growing pauses for `wait_seconds`, with log lines.

    A backend whose queues live in the database connects on first use: the schema with its functions is up to date by
    then.

    Raises `BackendUnavailable` after that time, and at once if waiting cannot help (a wrong password).
    """
    if messaging.capabilities.transactional:
        return
    hint = f"start the broker, or check the setting common.queues.{messaging.provider_name()}.url"
    await with_servers(f"the broker ({messaging.provider_name()})", wait_seconds, hint, messaging.open)

"""Queues of the messaging provider, as reported by a running process."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.services.engine.calls import Engine
from tasker.services.fleet.brokers import BrokerReport, broker_report


class Queues:
    """Reports about the provider that this process uses."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def report(self, namespaces: Sequence[str] | None = None) -> BrokerReport:
        """Return the provider, the queues of all or of these namespaces, and what the database says of them.

        Raises `MessagingError`, `DatabaseError`.
        """
        return await broker_report(self._engine.messaging, self._engine.connection, namespaces)

"""Messaging on PGMQ, in the engine's own database. Selected by the name `pgmq`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasker.messaging.port import known_settings
from tasker.settings.addresses import BackendSettings

if TYPE_CHECKING:
    from tasker.settings.table import Table
    from tasker_pgmq.backend import PgmqBackend

__all__ = ["PgmqBackend", "create", "settings_table"]


def create(settings: BackendSettings) -> PgmqBackend:
    """Return the backend that uses `settings["channel"]`, a `SqlChannel`; without one it can only return its SQL.

    Raises `MessagingError` for any other setting.
    """
    from tasker_pgmq.backend import PgmqBackend

    known_settings("pgmq", settings, ())
    return PgmqBackend(settings.get("channel"))


def settings_table() -> type[Table]:
    """Return the settings model of `[common.queues.pgmq]`."""
    from tasker_pgmq.table import PgmqTable

    return PgmqTable


def __getattr__(name: str) -> Any:
    """Import `PgmqBackend` on first use: every process imports this package for its variables (PEP 562)."""
    if name != "PgmqBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tasker_pgmq.backend import PgmqBackend

    return PgmqBackend

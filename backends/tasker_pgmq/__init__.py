"""Messaging on PGMQ, in the engine's own database. Chosen by the name `pgmq`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.contracts.messaging import BackendSettings, known_settings
from tasker_pgmq.backend import PgmqBackend

if TYPE_CHECKING:
    from tasker.contracts.settings import Table

__all__ = ["PgmqBackend", "create", "settings_table"]


def create(settings: BackendSettings) -> PgmqBackend:
    """The backend over `settings["channel"]`, a `SqlChannel`; without one only the SQL it installs is at hand.

    Raises `MessagingError` for any other setting.
    """
    known_settings("pgmq", settings, ())
    return PgmqBackend(settings.get("channel"))


def settings_table() -> type[Table]:
    """What `[common.queues.pgmq]` may hold."""
    from tasker_pgmq.table import PgmqTable

    return PgmqTable

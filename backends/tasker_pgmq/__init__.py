"""Messaging on PGMQ, in the engine's own database. Chosen by the name `pgmq`."""

from __future__ import annotations

from tasker.contracts.messaging import BackendSettings, known_settings
from tasker_pgmq.backend import PgmqBackend

__all__ = ["PgmqBackend", "create"]


def create(settings: BackendSettings) -> PgmqBackend:
    """The backend over `settings["channel"]`, a `SqlChannel`; without one only the SQL it installs is at hand.

    Raises `MessagingError` for any other setting.
    """
    known_settings("pgmq", settings, ())
    return PgmqBackend(settings.get("channel"))

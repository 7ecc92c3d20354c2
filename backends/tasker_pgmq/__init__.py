"""Messaging on PGMQ, in the engine's own database. Chosen by the name `pgmq`."""

from __future__ import annotations

from tasker.contracts.messaging import BackendSettings
from tasker.errors import MessagingError
from tasker_pgmq.backend import PgmqBackend

__all__ = ["PgmqBackend", "create"]


def create(settings: BackendSettings) -> PgmqBackend:
    """The backend over `settings["channel"]`, a `SqlChannel`; without one only the SQL it installs is at hand.

    Raises `MessagingError` for any other setting.
    """
    if unknown := sorted({*settings} - {"channel"}):
        hint = "there is: channel"
        raise MessagingError(f"pgmq has no setting {', '.join(unknown)}", retryable=False, hint=hint)
    return PgmqBackend(settings.get("channel"))

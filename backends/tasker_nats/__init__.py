"""Messaging on NATS JetStream: a work queue for each queue, one shared pull consumer. Chosen by the name `nats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.contracts.messaging import BackendSettings

if TYPE_CHECKING:
    from tasker.contracts.settings import Table
    from tasker_nats.backend import NatsBackend

VARIABLES = ("NATS_URL",)


def create(settings: BackendSettings) -> NatsBackend:
    """The backend for a mapping of `NatsSettings`' fields, not yet connected. Raises `MessagingError`."""
    from tasker_nats.backend import NatsBackend
    from tasker_nats.settings import NatsSettings

    return NatsBackend(NatsSettings.from_mapping(settings))


def settings_table() -> type[Table]:
    """What `[common.queues.nats]` may hold."""
    from tasker_nats.table import NatsTable

    return NatsTable

"""Messaging on NATS JetStream: a work-queue stream with a shared pull consumer for each queue. Selected by the name
`nats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.settings.addresses import BackendSettings

if TYPE_CHECKING:
    from tasker.settings.table import Table
    from tasker_nats.backend import NatsBackend

VARIABLES = ("NATS_URL",)


def create(settings: BackendSettings) -> NatsBackend:
    """Return the backend for a mapping of `NatsSettings`' fields, not yet connected. Raises `MessagingError`."""
    from tasker_nats.backend import NatsBackend
    from tasker_nats.settings import NatsSettings

    return NatsBackend(NatsSettings.from_mapping(settings))


def settings_table() -> type[Table]:
    """Return the settings model of `[common.queues.nats]`."""
    from tasker_nats.table import NatsTable

    return NatsTable

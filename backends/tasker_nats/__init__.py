"""Messaging on NATS JetStream: a work queue for each queue, one shared pull consumer. Chosen by the name `nats`."""

from __future__ import annotations

from tasker.contracts.messaging import BackendSettings
from tasker_nats.backend import NatsBackend
from tasker_nats.settings import NatsSettings

__all__ = ["NatsBackend", "create"]


def create(settings: BackendSettings) -> NatsBackend:
    """The backend for a mapping of `NatsSettings`' fields, not yet connected. Raises `MessagingError`."""
    return NatsBackend(NatsSettings.from_mapping(settings))

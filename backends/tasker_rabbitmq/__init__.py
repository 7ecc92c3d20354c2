"""Messaging on RabbitMQ: quorum queues, confirmed sends, acknowledgements. Chosen by the name `rabbitmq`."""

from __future__ import annotations

from tasker.contracts.messaging import BackendSettings
from tasker_rabbitmq.backend import RabbitmqBackend
from tasker_rabbitmq.settings import RabbitmqSettings

__all__ = ["RabbitmqBackend", "create"]


def create(settings: BackendSettings) -> RabbitmqBackend:
    """The backend, not yet connected. `settings` are fields of `RabbitmqSettings`; raises `MessagingError`."""
    return RabbitmqBackend(RabbitmqSettings.from_mapping(settings))

"""Messaging on RabbitMQ: quorum queues, publisher confirms, consumer acknowledgements. Chosen by the name `rabbitmq`."""

from __future__ import annotations

from tasker.contracts.messaging import BackendSettings
from tasker_rabbitmq.backend import RabbitmqBackend
from tasker_rabbitmq.settings import RabbitmqSettings

__all__ = ["RabbitmqBackend", "RabbitmqSettings", "create"]


def create(settings: BackendSettings) -> RabbitmqBackend:
    """The backend for a mapping of `RabbitmqSettings`' fields, not yet connected.

    Raises `MessagingError` for a key that is unknown or a value out of its range.
    """
    return RabbitmqBackend(RabbitmqSettings.from_mapping(settings))

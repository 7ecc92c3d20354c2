"""Messaging on RabbitMQ: quorum queues, confirmed sends, acknowledgements. Selected by the name `rabbitmq`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.settings.addresses import BackendSettings

if TYPE_CHECKING:
    from tasker.settings.table import Table
    from tasker_rabbitmq.backend import RabbitmqBackend

VARIABLES = ("RABBITMQ_URL",)


def create(settings: BackendSettings) -> RabbitmqBackend:
    """Return the backend, not yet connected. `settings` are fields of `RabbitmqSettings`. Raises `MessagingError`."""
    from tasker_rabbitmq.backend import RabbitmqBackend
    from tasker_rabbitmq.settings import RabbitmqSettings

    return RabbitmqBackend(RabbitmqSettings.from_mapping(settings))


def settings_table() -> type[Table]:
    """Return the settings model of `[common.queues.rabbitmq]`."""
    from tasker_rabbitmq.table import RabbitmqTable

    return RabbitmqTable

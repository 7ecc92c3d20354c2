"""Durable events of steps as signed HTTP requests, in the format of Standard Webhooks. Named `webhooks`."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from tasker.plugins.hooks import hookimpl

if TYPE_CHECKING:
    import click
    from fastapi import APIRouter

    from tasker.settings.table import Table
    from tasker_webhooks.table import WebhooksTable

__all__ = ["Webhooks"]


class Webhooks:
    """Plugin that posts events: signed in `tasker_webhooks.signing`, sent and retried in `tasker_webhooks.sending`."""

    def __init__(self) -> None:
        self._settings: WebhooksTable | None = None

    @hookimpl
    def tasker_settings(self) -> type[Table]:
        """Return the settings model of `[plugins.webhooks]`."""
        from tasker_webhooks.table import WebhooksTable

        return WebhooksTable

    @hookimpl
    def tasker_configured(self, settings: WebhooksTable) -> None:
        """Check the settings. Raises `ValueError` for endpoints with the same name, or without a secret."""
        names = [endpoint.name for endpoint in settings.endpoints]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"several endpoints are called {', '.join(twice)}")
        if bare := [endpoint.name for endpoint in settings.endpoints if not endpoint.secrets]:
            raise ValueError(f"the endpoint {bare[0]} has no secret: `tasker webhook secret` makes one")
        self._settings = settings

    @hookimpl
    def tasker_background_jobs(self, database_url: str) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """Return the job that sends events if there is an enabled endpoint, or a secret for the URLs of tasks."""
        settings = self._settings
        if settings is None or not any(endpoint.enabled for endpoint in settings.every()):
            return None
        from tasker_webhooks.sending import send_all

        process_started = time.monotonic()
        return lambda: send_all(database_url, settings, process_started)

    @hookimpl
    def tasker_connections(self) -> int:
        """Return the number of the sender's connections if there is an enabled endpoint."""
        settings = self._settings
        if settings is None or not any(endpoint.enabled for endpoint in settings.every()):
            return 0
        from tasker_webhooks.sending import CONNECTIONS

        return CONNECTIONS

    @hookimpl
    def tasker_routers(self) -> Sequence[APIRouter]:
        """Return the routes of `/plugins/webhooks`, which the commands use through a server."""
        if self._settings is None:
            return []
        from tasker_webhooks.routes import endpoint_routes

        return [endpoint_routes(self._settings)]

    @hookimpl
    def tasker_commands(self) -> Sequence[click.Command]:
        """Return `tasker webhook`; without settings it creates secrets for them, and its other commands explain the
        setup."""
        from tasker_webhooks.commands import webhook

        return [webhook(self._settings)]

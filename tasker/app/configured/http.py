"""How a server answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.app.configured.unset import is_set
from tasker.process.http import HttpPool, HttpSettings

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def http_settings(settings: Settings) -> HttpSettings:
    """What `tasker server` is made with. The default of the address is not used: it is open to every machine."""
    web = settings.orchestration.web
    pools = web.database_pools
    return HttpSettings(
        enabled=web.enabled,
        bind_address=web.bind_address if is_set(web, "bind_address") else None,
        request_seconds=web.request_timeout_ms / 1000,
        config_endpoint=web.config_endpoint_enabled,
        root_path=web.root_path.rstrip("/"),
        cors_origins=web.cors_origins,
        body_bytes=web.max_body_bytes,
        streams=web.max_streams,
        pool=HttpPool(
            max_connections=pools.web_api_max_connections,
            min_connections=pools.web_api_pool_size,
            acquire_timeout=pools.web_api_connection_timeout_seconds,
            idle_timeout=pools.web_api_idle_timeout_seconds,
        ),
    )

"""Event publishers and subscribers of plugins."""

from __future__ import annotations

import logging

from tasker.domain_events.discovery import register
from tasker.errors import UsageError
from tasker.plugins.process import PluginHost

_log = logging.getLogger("tasker.plugins")


def register_plugins(plugins: PluginHost) -> None:
    """Register what plugins return from `tasker_domain_events`; log what is neither publisher nor subscriber."""
    for name, found in plugins.answers("tasker_domain_events"):
        try:
            register(found)
        except (UsageError, TypeError) as error:
            _log.error("plugin_refused plugin=%s hook=tasker_domain_events reason=%s", name, error)

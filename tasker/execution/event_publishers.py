"""Event publishers and subscribers of plugins."""

from __future__ import annotations

import logging

from tasker.errors import UsageError
from tasker.handlers.events.registries import register
from tasker.plugins.host import PluginHost

_plugin_log = logging.getLogger("tasker.plugins")


def register_plugins(plugins: PluginHost) -> None:
    """Register what plugins return from `tasker_domain_events`; log what is neither publisher nor subscriber."""
    for name, answer in plugins.answers("tasker_domain_events"):
        try:
            register(answer)
        except (UsageError, TypeError) as error:
            _plugin_log.error("plugin_refused plugin=%s hook=tasker_domain_events reason=%s", name, error)

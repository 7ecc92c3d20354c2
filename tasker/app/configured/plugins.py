"""Plugin settings of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.plugins.found import PluginChoice

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def plugin_choice(settings: Settings) -> PluginChoice:
    """Return the enabled and disabled plugins, and the plugin tables that contain settings."""
    plugins = settings.plugins
    tables = {name: table for name, table in plugins.tables().items() if table.to_dict(only_set=True)}
    return PluginChoice(plugins.enabled, plugins.disabled, tables)

"""Which plugins a process has, and what they are made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.plugins.choice import PluginChoice

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def plugin_choice(settings: Settings) -> PluginChoice:
    """Those that are on, those that are off, and the tables in which something is set."""
    plugins = settings.plugins
    given = {name: table for name, table in plugins.tables().items() if table.model_fields_set}
    return PluginChoice(plugins.enabled, plugins.disabled, given)

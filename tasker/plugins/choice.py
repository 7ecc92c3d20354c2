"""Selection and settings of a process's plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.plugins.found import Installed


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """`[plugins]` of the configuration. Without it, the non-optional plugins are active with default settings.

    `settings` holds the tables that set something, by plugin.
    """

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def has(self, plugin: Installed) -> bool:
        """Return True if the process loads the plugin."""
        return plugin.name not in self.disabled and (plugin.name in self.enabled or not plugin.optional)

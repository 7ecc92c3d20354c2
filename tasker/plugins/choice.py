"""Which of the installed plugins a process has, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.plugins.found import Installed


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """`[plugins]` of the configuration. Without one: those that are on by themselves, with their defaults.

    `settings` holds by name the tables in which something is set.
    """

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def has(self, plugin: Installed) -> bool:
        """True when the process is to load it."""
        return plugin.name not in self.disabled and (plugin.name in self.enabled or not plugin.optional)

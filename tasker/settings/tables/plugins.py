"""`plugins`: the enabled plugins, and a table for each that declares one."""

from __future__ import annotations

from tasker.contracts.settings import Table, several


class Plugins(Table):
    """Enabled and disabled plugins. Each plugin that has settings has a table of its own name below."""

    enabled: tuple[str, ...] = several(
        (),
        "Names of required plugins; built-in plugins are enabled here too.",
        variable="TASKER_PLUGINS_ENABLED",
        advice="`tasker plugin list` shows the names.",
    )
    disabled: tuple[str, ...] = several(
        (),
        "Names of installed plugins that are not imported; their tables are ignored.",
        variable="TASKER_PLUGINS_DISABLED",
    )

    def tables(self) -> dict[str, Table]:
        """Return the tables of plugins by the plugin's name (see `tasker.settings.installed`)."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in Plugins.model_fields}

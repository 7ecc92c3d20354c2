"""Commands of plugins that are installed and not on. Asked only about a command that there is not, because they are
imported for it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tasker.app.configured import from_environment
from tasker.errors import TaskerError
from tasker.plugins.asking import answer_of
from tasker.plugins.choice import PluginChoice
from tasker.plugins.found import Installed, installed, load
from tasker.plugins.process import ready

COMMANDS = "tasker_commands"


def told_of(command: str) -> str | None:
    """Which plugin has this command, and how to turn it on; None: none has that could be imported."""
    try:
        chosen = from_environment().plugins
    except TaskerError:  # the user is warned of that already
        return None
    off = [plugin for plugin in installed() if not chosen.has(plugin)]
    return next((_told(command, plugin, chosen) for plugin in off if command in _names(plugin, chosen)), None)


def _told(command: str, plugin: Installed, chosen: PluginChoice) -> str:
    name = plugin.name
    disabled = ["take it out of plugins.disabled"] if name in chosen.disabled else []
    named = [f'name it in the configuration, [plugins] enabled = ["{name}"], or in TASKER_PLUGINS_ENABLED']
    remedy = " and ".join(disabled + (named if plugin.optional else []))
    return f"No such command {command!r}: it is of the plugin {name}, which is off; {remedy}."


def _names(plugin: Installed, chosen: PluginChoice) -> Sequence[str | None]:
    if COMMANDS not in load(plugin).hooks:
        return ()
    hooks, refusal = ready(plugin, chosen)
    try:
        answer = answer_of(hooks[COMMANDS]) if refusal is None and COMMANDS in hooks else ()
    except Exception:  # whatever it is, there is no such command
        return ()
    return [each.name for each in answer or () if isinstance(each, click.Command)]

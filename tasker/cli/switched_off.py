"""Commands of installed plugins that are disabled or refused.

Consulted only for an unknown command, because it imports these plugins.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from tasker.app.configured import from_environment
from tasker.errors import TaskerError
from tasker.plugins.found import Installed, PluginChoice, installed, load, unconfigured
from tasker.plugins.host import ready
from tasker.plugins.threads import answer_of

COMMANDS = "tasker_commands"


def describe_disabled_command(command: str) -> str | None:
    """Return a message with the plugin that has this command and why it is off.

    None if no plugin has it, as far as plugins can be imported.
    """
    try:
        chosen = from_environment().plugins
    except TaskerError:  # a warning about it was printed already
        return None
    off = [plugin for plugin in installed() if not chosen.has(plugin)]
    refused = [plugin for plugin in installed() if chosen.has(plugin) and _is_for_setup(command, plugin)]
    return next(
        (_disabled_text(command, plugin, chosen) for plugin in off if command in _names(plugin, chosen)),
        next((_refused(command, plugin, chosen) for plugin in refused), None),
    )


def setup_command(name: str) -> click.Command | None:
    """Return the command of that name which works without the settings of its plugin; None if there is none.

    Such a command has the attribute `works_without_settings`. It creates, for example, what the settings need.
    """
    commands = (command for plugin in installed() for command in _unconfigured(plugin) if command.name == name)
    return next((command for command in commands if getattr(command, "works_without_settings", False)), None)


def _is_for_setup(name: str, plugin: Installed) -> bool:
    return any(command.name == name for command in _unconfigured(plugin))


def _refused(command: str, plugin: Installed, chosen: PluginChoice) -> str:
    _, refusal = ready(plugin, chosen)
    return f"No such command {command!r}: it belongs to the plugin {plugin.name}, which is refused: {refusal}"


def _unconfigured(plugin: Installed) -> Sequence[click.Command]:
    if COMMANDS not in (hooks := unconfigured(plugin)):
        return ()
    try:
        answer = answer_of(hooks[COMMANDS])
    except Exception:  # the plugin needs its settings
        return ()
    return [command for command in answer or () if isinstance(command, click.Command)]


def _disabled_text(command: str, plugin: Installed, chosen: PluginChoice) -> str:
    name = plugin.name
    disabled = ["remove it from plugins.disabled"] if name in chosen.disabled else []
    named = [f'enable it in the configuration, [plugins] enabled = ["{name}"], or in TASKER_PLUGINS_ENABLED']
    remedy = " and ".join(disabled + (named if plugin.optional else []))
    return f"No such command {command!r}: it belongs to the plugin {name}, which is disabled; {remedy}."


def _names(plugin: Installed, chosen: PluginChoice) -> Sequence[str | None]:
    if COMMANDS not in load(plugin).hooks:
        return ()
    hooks, refusal = ready(plugin, chosen)
    try:
        answer = answer_of(hooks[COMMANDS]) if refusal is None and COMMANDS in hooks else ()
    except Exception:  # for any error there is no such command
        return ()
    return [command.name for command in answer or () if isinstance(command, click.Command)]

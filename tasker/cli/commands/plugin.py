"""`tasker plugin`: installed plugins and their status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT
from tasker.cli.render.values import echo
from tasker.cli.suggestions import GuessingGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasker.handlers.builtin import BuiltinHandler
    from tasker.plugins.found import PluginChoice
    from tasker.services.configuration.plugins import PluginReport
    from tasker.template.plugin_rules import TemplateRules


@click.group(cls=GuessingGroup)
def plugin() -> None:
    """Show the plugins that are installed here.

    Both commands use this environment and the configuration that a process reads here, and call no server: plugins are
    installed per machine. The state of plugins in a running process is in its log, and in /metrics of a worker or
    orchestrator with a port.
    """


@plugin.command("list")
@FORMAT
def list_plugins(form: str) -> None:
    """List the plugins with their status, their origin, and the error of those that cannot be loaded.

    \b
    Examples:
      tasker plugin list
      TASKER_PLUGINS_ENABLED=logs tasker plugin list --format json
    """
    from tasker.services.configuration.plugins import plugin_reports

    reports = plugin_reports(plugin_choice_here())
    if form == "json":
        echo(json.dumps([report.to_dict() for report in reports], indent=2))
        return
    from tasker.cli.render.values import table

    rows = [
        [report.name, report.status, f"{report.distribution} {report.version}", report.problem or "-"]
        for report in reports
    ]
    echo(table(["PLUGIN", "STATUS", "FROM", "PROBLEM"], rows) if rows else "No plugins are installed.")


@plugin.command()
@click.argument("name")
@FORMAT
def show(name: str, form: str) -> None:
    """Show one plugin with its hooks and settings. Exit code 1 if it is enabled and cannot be loaded.

    \b
    Examples:
      tasker plugin show logs
    """
    from tasker.services.configuration.plugins import plugin_report

    reports = plugin_report(name, plugin_choice_here())
    if form == "json":
        echo(json.dumps([report.to_dict() for report in reports], indent=2) if len(reports) > 1 else _json(reports[0]))
    else:
        echo("\n\n".join(map(_text, reports)))
    if any(report.status == "refused" for report in reports):
        click.get_current_context().exit(1)


def _json(report: PluginReport) -> str:
    return json.dumps(report.to_dict(), indent=2)


def _text(report: PluginReport) -> str:
    lines = [
        ("status", {"off": "disabled; add it to plugins.enabled"}.get(report.status, report.status)),
        ("from", f"{report.distribution} {report.version} ({report.place})"),
        ("problem", report.problem),
        ("hooks", ", ".join(report.hooks)),
        ("settings", ", ".join(f"plugins.{report.name}.{setting}" for setting in report.settings)),
    ]
    return "\n".join([report.name, *(f"  {label + ':':<10}{value}" for label, value in lines if value)])


def plugin_choice_here() -> PluginChoice:
    """Return the configured plugin choice; of an invalid configuration its usable part, with a warning."""
    from tasker.app.configured import from_environment, plugin_choice
    from tasker.services.configuration.loading import ConfigurationInvalid

    try:
        return from_environment().plugins
    except ConfigurationInvalid as error:
        click.echo(f"Warning: the configuration has problems:\n{error.message}", err=True)
        return plugin_choice(error.usable.settings)


def plugged_handlers() -> Mapping[str, type[BuiltinHandler]]:
    """Return the handlers of built-in steps that the plugins of this environment add, by name."""
    from tasker.plugins.contributions import handlers_of
    from tasker.plugins.host import plugins_of

    return handlers_of(plugins_of(plugin_choice_here()))


def plugged_rules() -> TemplateRules:
    """Return the template rules added by the plugins of this environment."""
    from tasker.plugins.contributions import rules_of
    from tasker.plugins.host import plugins_of

    return rules_of(plugins_of(plugin_choice_here()))

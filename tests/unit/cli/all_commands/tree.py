"""All commands of `tasker`, with those that shipped plugins bring."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tasker.cli.main import cli

PLUGINS = "webhooks,prometheus,otel,logs,sentry"
"""For TASKER_PLUGINS_ENABLED: every plugin that comes with Tasker."""


def commands() -> dict[str, click.Command]:
    """Every command that is no group, by what is typed after `tasker`; a group that does something by itself, too."""
    return dict(_below(click.Context(cli, info_name=""), ()))


def _below(ctx: click.Context, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    group = ctx.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from _below(click.Context(command, info_name=name, parent=ctx), (*path, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*path, name)), command


def option(command: click.Command, name: str) -> click.Option | None:
    """The option of that name, if the command has one."""
    options = (each for each in command.params if isinstance(each, click.Option))
    return next((each for each in options if name in each.opts), None)

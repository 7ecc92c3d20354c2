"""`tasker worker`: start a worker, or list the running processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tasker.cli.guessing import GuessingGroup, no_such_command
from tasker.cli.worker.start import worker as start

LIST = "list"


class WorkerGroup(GuessingGroup):
    """Group that starts a worker unless another command is named, and imports `list` only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), LIST])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, or None if there is none of that name."""
        if cmd_name != LIST:
            return super().get_command(ctx, cmd_name)
        from tasker.cli.worker.listing import list_

        return list_

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `start` if the first argument is not a command; refuse a misspelt command that is not a path."""
        commands = self.list_commands(ctx)
        if args and args[0] in commands:
            return super().parse_args(ctx, args)
        if args and _is_nearly(args[0], [*commands, "help"]):
            ctx.fail(no_such_command(ctx, args))
        return super().parse_args(ctx, ["start", *args])


def _is_nearly(word: str, commands: Sequence[str]) -> bool:
    if word.startswith("-") or Path(word).exists():
        return False
    from difflib import get_close_matches  # imported only after a mistake

    return bool(get_close_matches(word, commands, 1))


worker = WorkerGroup("worker", commands={"start": start})

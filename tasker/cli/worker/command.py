"""`tasker worker` with what belongs to it: starting one, and seeing who is at work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tasker.cli.guessing import GuessingGroup, no_such_command
from tasker.cli.worker.start import worker as start

LIST = "list"


class WorkerGroup(GuessingGroup):
    """A group that starts a worker when no other command is named, and imports the list of workers when that is."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return sorted([*super().list_commands(ctx), LIST])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; None when there is none of that name."""
        if cmd_name != LIST:
            return super().get_command(ctx, cmd_name)
        from tasker.cli.worker.listing import list_

        return list_

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`start` stands for whatever is no command; what is almost one, and no path, is refused."""
        commands = self.list_commands(ctx)
        if args and args[0] in commands:
            return super().parse_args(ctx, args)
        if args and _is_nearly(args[0], [*commands, "help"]):
            ctx.fail(no_such_command(ctx, args))
        return super().parse_args(ctx, ["start", *args])


def _is_nearly(word: str, commands: Sequence[str]) -> bool:
    if word.startswith("-") or Path(word).exists():
        return False
    from difflib import get_close_matches  # for mistakes alone

    return bool(get_close_matches(word, commands, 1))


worker = WorkerGroup("worker", commands={"start": start})

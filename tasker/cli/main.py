"""The command `tasker`: finds a command, runs it, and turns Tasker's errors into messages and exit codes.

Exit codes: 0 done, 1 failed, 2 a mistake in the command or in what it was given, 130 interrupted.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import click

from tasker import __version__
from tasker.errors import DuplicateTask, InputInvalid, ResolutionError, TaskerError, TemplateError, UsageError

COMMANDS = {
    "run": ("tasker.cli.run:run", "Run a workflow and show its progress."),
    "template": ("tasker.cli.template:template", "Validate, draw and describe templates."),
    "task": ("tasker.cli.task:task", "Submit, list, show and cancel tasks."),
    "pause": ("tasker.cli.pause:pause", "Let nothing more of a namespace, template, step or task start."),
    "resume": ("tasker.cli.pause:resume", "End a pause."),
    "dev": ("tasker.cli.dev:dev", "Serve workflows and start again when their files change."),
    "worker": ("tasker.cli.worker_registry:worker", "Run steps until stopped; list who is at work."),
    "orchestrator": ("tasker.cli.orchestrator:orchestrator", "Move tasks on until stopped; runs no steps."),
    "broker": ("tasker.cli.broker:broker", "Look at the messaging provider, and move to another one."),
    "config": ("tasker.cli.config:config", "Make, check, show and explain the configuration."),
    "db": ("tasker.cli.db:db", "Create and upgrade the database schema."),
    "new": ("tasker.cli.new:new", "Start a workflow: template, handlers and a test."),
    "completion": ("tasker.cli.completion:completion", "Print the script that completes commands in your shell."),
}
"""Each command's place and its line in the help, which is shown without importing it."""

MISTAKES = (UsageError, InputInvalid, TemplateError, ResolutionError, DuplicateTask)


class TaskerGroup(click.Group):
    """A group that imports a command when it is used, and shows a `TaskerError` as a message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; with TASKER_DEBUG=1 an error keeps its traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(130)
        except TaskerError as error:
            if os.environ.get("TASKER_DEBUG") == "1":
                raise
            raise Failure(error) from error


class Failure(click.ClickException):
    """A `TaskerError` as the user sees it: the message, and what to do."""

    def __init__(self, error: TaskerError) -> None:
        super().__init__(f"{error.message}\nHint: {error.hint}" if error.hint else error.message)
        self.exit_code = 2 if isinstance(error, MISTAKES) else 1  # type: ignore[misc]  # click: a default, meant to be set


@click.command(cls=TaskerGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tasker", message="%(prog)s %(version)s")
def cli() -> None:
    """Durable workflows: YAML templates, Python handlers, PostgreSQL.

    Try `tasker new hello` and `tasker run hello`.
    """


def main() -> None:
    """The entry point of the console scripts `tasker` and `tasker-ctl`."""
    cli(prog_name="tasker")

"""Entry of the command line: imports the command that is used, turns errors into exit codes.

Exit codes: 0 success, 1 failure, 2 a mistake in the command or its input, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from tasker import __version__
from tasker.__main__ import INTERRUPTED
from tasker.cli.loading import pause_gc
from tasker.cli.suggestions import GuessingGroup, explained
from tasker.errors import (
    DeclarationMismatch,
    DuplicateTask,
    InputInvalid,
    ResolutionError,
    StepNotFound,
    TaskerError,
    TemplateError,
    UsageError,
)
from tasker.errors.remedies import command_form
from tasker.installed import offered
from tasker.plugins.found import PLUGINS_GROUP

if TYPE_CHECKING:
    from tasker.plugins.host import PluginHost

COMMANDS = {
    "run": ("tasker.cli.run.command:run", "Run a workflow and show its progress."),
    "simulate": ("tasker.cli.commands.simulate:simulate", "Run a template without a database, or all its paths."),
    "generate": ("tasker.cli.commands.generate:generate", "Generate models, handlers and scenarios from templates."),
    "plan": ("tasker.cli.commands.deployments:plan", "Show what registering templates would change."),
    "apply": ("tasker.cli.commands.deployments:apply", "Register the templates of a plan, all or none."),
    "template": ("tasker.cli.commands.template:template", "Validate, draw and describe templates."),
    "task": ("tasker.cli.commands.task:task", "Submit, watch, list, show, explain, repair and cancel tasks."),
    "schedule": ("tasker.cli.commands.schedules:schedule", "List, create, preview, pause and backfill schedules."),
    "dlq": ("tasker.cli.commands.dead_letters:dlq", "List, retry and close dead letters."),
    "pause": ("tasker.cli.commands.fleet:pause", "Pause a namespace, template, step, task or queue."),
    "resume": ("tasker.cli.commands.fleet:resume", "Resume a paused namespace, template, step, task or queue."),
    "events": (
        "tasker.cli.commands.events:events",
        "Read, follow and replay the events of steps; send events to steps that wait.",
    ),
    "approval": ("tasker.cli.commands.approval:approval", "List, show and decide what waits for persons."),
    "dev": ("tasker.cli.commands.dev:dev", "Serve workflows and restart when their files change."),
    "top": ("tasker.cli.commands.top:top", "Show the fleet live: queues, workers, circuit breakers, templates."),
    "limit": ("tasker.cli.commands.limit:limit", "Show limits of steps and what waits for them."),
    "analytics": ("tasker.cli.commands.analytics:analytics", "Show recent throughput, failures and slow steps."),
    "doctor": ("tasker.cli.commands.fleet:doctor", "Diagnose the fleet and its database."),
    "actions": ("tasker.cli.commands.fleet:actions", "List operator actions and their outcome."),
    "worker": ("tasker.cli.commands.worker:worker", "Run steps until stopped; list workers."),
    "orchestrator": (
        "tasker.cli.commands.orchestrator:orchestrator",
        "Orchestrate tasks until stopped; runs no steps.",
    ),
    "server": ("tasker.cli.commands.server:server", "Serve the HTTP API until stopped."),
    "auth": ("tasker.cli.commands.auth:auth", "Create and check keys and tokens for the HTTP API."),
    "profile": ("tasker.cli.commands.profile:profile", "Manage server profiles and choose the active one."),
    "broker": ("tasker.cli.commands.broker:broker", "Show the messaging provider, or migrate to another one."),
    "plugin": ("tasker.cli.commands.plugin:plugin", "Show installed, enabled and refused plugins."),
    "config": ("tasker.cli.commands.config:config", "Generate, check, show and explain the configuration."),
    "db": ("tasker.cli.commands.database:db", "Create, upgrade, check and prune the database."),
    "new": ("tasker.cli.commands.new:new", "Create a workflow: template, handlers and a test."),
    "completion": ("tasker.cli.main:completion", "Print the script that completes commands in your shell."),
}
"""Location and help line of each command; the help shows the line without importing the command."""

WANTS_JSON = "tasker.cli.wants_json"
"""Key in the context's `meta`, set by a command whose output is JSON, including errors."""

ARGUMENTS = "tasker.cli.arguments"
"""Key in the context's `meta` for the command line as it was typed."""

MAY_SWITCH_ON = ("TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT", "TASKER_PLUGINS_ENABLED")
"""Variables that can enable plugins; if none is set, the configuration need not be read to know the enabled plugins."""

MISTAKES = (
    UsageError,
    InputInvalid,
    TemplateError,
    ResolutionError,
    DeclarationMismatch,
    DuplicateTask,
    StepNotFound,
)


class TaskerGroup(GuessingGroup):
    """Command group that imports a command when it is used, and shows a `TaskerError` as a message."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        """Parse the command line; Ctrl-C during parsing exits like Ctrl-C during the command."""
        typed = tuple(args)
        try:
            ctx = super().make_context(info_name, args, *rest, **extra)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        ctx.meta[ARGUMENTS] = typed
        return ctx

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the built-in commands in the order of the table, then those of plugins."""
        return [*COMMANDS, *plugin_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; return None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return plugin_commands().get(cmd_name) or _setup_command(cmd_name)
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        with pause_gc():
            command: click.Command = getattr(import_module(module), attribute)
        return command

    def unknown(self, ctx: click.Context, args: Sequence[str]) -> str:
        """Return a message about the disabled plugin that has the command, else suggestions."""
        from tasker.cli.switched_off import describe_disabled_command

        return describe_disabled_command(args[0]) or super().unknown(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; the built-in ones from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
        if others := plugin_commands():
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(name, command.get_short_help_str()) for name, command in others.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; with TASKER_DEBUG=1 errors are raised with their traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except (TaskerError, OSError) as error:
            user_error = _for_the_user(error)
            if user_error is None or os.environ.get("TASKER_DEBUG") == "1":
                raise
            user_error.hint = command_form(user_error.hint)  # that of a server names requests
            if ctx.meta.get(WANTS_JSON) or (user_error is not error and _asks_for_json(ctx.meta.get(ARGUMENTS, ()))):
                _write_error(user_error)
            raise CommandFailure(user_error) from error
        except click.UsageError as error:
            mistake = explained(error)
            if _asks_for_json(ctx.meta.get(ARGUMENTS, ())):
                _write_error(UsageError(mistake.format_message()))
            raise mistake from None


def plugin_commands() -> dict[str, click.Command]:
    """Return the commands of plugins by name; a non-command, or one whose name is taken, is skipped."""
    if not offered(PLUGINS_GROUP) and not any(map(os.environ.get, MAY_SWITCH_ON)):
        return {}
    from tasker.app.configured import from_environment
    from tasker.plugins.host import plugins_of

    try:
        chosen = from_environment().plugins
    except TaskerError as error:
        _warn(f"commands of plugins are not available; the configuration has problems: {error.message.splitlines()[0]}")
        return {}
    return _commands_of(plugins_of(chosen))


def _setup_command(name: str) -> click.Command | None:
    from tasker.cli.switched_off import setup_command

    return setup_command(name)


@cache
def _warn(text: str) -> None:
    """Print a warning, once per process."""
    click.echo(f"Warning: {text}", err=True)


@cache
def _commands_of(plugins: PluginHost) -> dict[str, click.Command]:
    by_name: dict[str, click.Command] = {}
    for plugin, commands in plugins.answers("tasker_commands"):
        for command in commands if isinstance(commands, (list, tuple)) else [commands]:
            name = getattr(command, "name", None)
            if isinstance(command, click.Command) and name and name not in COMMANDS and name not in by_name:
                by_name[name] = command
            else:
                click.echo(f"Warning: the plugin {plugin} cannot add the command {name or command!r}", err=True)
    return by_name


def _for_the_user(error: TaskerError | OSError) -> TaskerError | None:
    """Return the error for the user; an OSError about a path becomes a `UsageError`, another OSError None."""
    if isinstance(error, TaskerError):
        return error
    if error.filename is None:
        return None
    denied = isinstance(error, PermissionError)
    hint = "check that this user may read it and enter its parent folders" if denied else "choose another path"
    return UsageError(f"{error.filename} cannot be used: {error.strerror}", hint=hint)


def _asks_for_json(typed: Sequence[str]) -> bool:
    """Return whether an unparsed command line asks for JSON: a mistake may have prevented the parsing of the option."""
    return bool({"--json", "--format=json"} & set(typed)) or ("--format", "json") in pairwise(typed)


def _write_error(error: TaskerError) -> None:
    import sys

    from tasker.cli.run.input import error_object, write_json

    write_json(sys.stdout, error_object(error))


class CommandFailure(click.ClickException):
    """`TaskerError` as shown to the user: message and hint."""

    def __init__(self, error: TaskerError) -> None:
        super().__init__(f"{error.message}\nHint: {error.hint}" if error.hint else error.message)
        self.exit_code = 2 if isinstance(error, MISTAKES) else 1  # type: ignore[misc]  # click: a default, meant to be set


@click.command(cls=TaskerGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tasker", message="%(prog)s %(version)s")
def cli() -> None:
    """Run durable workflows: YAML templates, Python handlers, PostgreSQL.

    Try `tasker new hello` and `tasker run hello`.
    """


def main(heed: Callable[[], object] = lambda: None) -> None:
    """Run the command line in its own process (see `tasker.__main__`); call `heed` once Ctrl-C is handled."""

    open_closed_streams()
    with output_errors():
        heed()
        cli(prog_name="tasker")


VARIABLE = "_TASKER_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    Bash, in ~/.bashrc: eval "$(tasker completion bash)"; zsh, in ~/.zshrc: eval "$(tasker completion zsh)"; fish:
    tasker completion fish > ~/.config/fish/completions/tasker.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None  # click supports all three shells
    click.echo(completion_class(ctx.find_root().command, {}, "tasker", VARIABLE).source())


FAILED = 1
CANNOT_BE_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def open_closed_streams() -> None:
    """Open closed standard streams (`>&-`) before a file or a connection takes their descriptors.

    Writing to such a standard output fails, as before; output to such a standard error is dropped.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(opened := os.open(os.devnull, mode), descriptor)
            if opened > 2:
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  # for as long as the process lives
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


@contextlib.contextmanager
def output_errors() -> Iterator[None]:
    """Report output that cannot be written in one line on standard error, and exit with 1.

    If the reader is gone (`| head`), click exits silently.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if os.environ.get("TASKER_DEBUG") == "1" or error.errno not in CANNOT_BE_WRITTEN:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the buffered rest would fail again at exit
        with contextlib.suppress(OSError):
            click.echo("\n".join([f"Error: cannot write the output: {error.strerror}", *_notes(error)]), err=True)
        sys.exit(FAILED)


def _notes(error: OSError) -> list[str]:
    """Return the notes of the error or of the one before it: output that failed once fails again when it is flushed."""
    return [note for exception in (error.__context__, error) for note in getattr(exception, "__notes__", ())]

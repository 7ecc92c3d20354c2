"""Suggestions for mistyped commands, and commands that need no server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

SYNONYMS = {
    "ls": "list",
    "ps": "list",
    "status": "list",
    "info": "show",
    "logs": "history",
    "kill": "cancel",
    "stop": "cancel",
    "rerun": "retry",
    "create": "submit",
    "start": "run",
    "init": "new",
}
"""Names that other programs use for our commands."""

REPLACED = {
    "task create": "task submit",
    "task get": "task show",
    "health": "doctor",
    "docs": "config docs",
    "config detect-unused": "config validate",
    "dlq purge": "db prune --failed-days DAYS --pending-days DAYS",
    "dlq prune": "db prune --failed-days DAYS --pending-days DAYS",
}
"""Commands of tasker-ctl, and of other tools, that have another name here."""

FEW = 3


class WorkflowPath(click.Path):
    """Parameter type for an existing template file or workflow folder; suggests a path for a missing one."""

    def __init__(self) -> None:
        super().__init__(exists=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert as `click.Path`. Raises `click.BadParameter` with a suggestion."""
        from tasker.services.workflows.targets import resolve_path

        if Path(value).exists() or (meant := resolve_path(value)) is None:
            return super().convert(value, param, ctx)
        return self.fail(f"Path {str(value)!r} does not exist: {meant}", param, ctx)


class GuessingGroup(click.Group):
    """Command group that suggests similar commands for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises `click.UsageError` with suggestions if there is none."""
        if not ctx.resilient_parsing and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(self.unknown(ctx, args))
        return super().resolve_command(ctx, args)

    def unknown(self, ctx: click.Context, args: Sequence[str]) -> str:
        """Return the message for `args`, whose first item is not a command of this group."""
        return no_such_command(ctx, args)


def explained(error: click.UsageError) -> click.UsageError:
    """Return a clearer error where there is one, else the error itself.

    For `--url` or `--profile` on a command that calls no server it gives the reason and what the command works on; for
    an invalid number it gives the expected range.
    """

    if isinstance(error, click.BadParameter) and error.param is not None:
        return _no_number(error, error.param.type) or error
    named = isinstance(error, click.NoSuchOption) and error.option_name in ("--url", "--profile")
    if not named or error.ctx is None:
        return error
    takes_database = any(param.name == "database_url" for param in error.ctx.command.params)
    where = "directly on the database: use --database-url or --data-dir" if takes_database else "here"
    reason = DIRECTLY.get(" ".join(error.ctx.command_path.split()[1:]))  # without the name of the executable
    why = f": {reason}" if reason else ""
    return click.UsageError(f"`{error.ctx.command_path}` does not call a server{why}. It runs {where}.", error.ctx)


def _no_number(error: click.BadParameter, kind: click.ParamType[Any]) -> click.BadParameter | None:
    """Return a message with the expected range in place of click's "not a valid integer range"."""
    value, separator, _ = error.message.partition(f" is not a valid {kind.name}")
    if not separator or not isinstance(kind, click.IntRange | click.FloatRange):
        return None
    least = None if kind.min is None else f"{'above' if kind.min_open else 'from'} {kind.min}"
    most = None if kind.max is None else f"{'below' if kind.max_open else 'up to'} {kind.max}"
    number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    message = f"expected {' '.join(filter(None, (number, least, most)))}, found {value}."
    return click.BadParameter(message, error.ctx, error.param, error.param_hint)


def no_such_command(ctx: click.Context, args: Sequence[str]) -> str:
    """Return the message for `args`, whose first item is not a command of the context's group."""
    root, *groups = ctx.command_path.split()
    if replacement := REPLACED.get(" ".join([*groups, args[0]])):
        return f"No such command {args[0]!r}. Use `{root} {replacement}`."
    meant = list(dict.fromkeys(_meant(ctx, args)))[:FEW]
    guess = f" Did you mean {' or '.join(f'`{path}`' for path in meant)}?" if meant else ""
    return f"No such command {args[0]!r}.{guess}"


def _meant(ctx: click.Context, args: Sequence[str]) -> Iterator[str]:
    """Yield suggestions, the likeliest first: help, the same name in another group, similar names here, synonyms."""
    from difflib import get_close_matches  # imported only after a mistake

    name, here = args[0].lower(), ctx.command_path
    group = ctx.command
    assert isinstance(group, click.Group)
    if name == "help":
        yield " ".join([here, *(arg for arg in args[1:2] if group.get_command(ctx, arg)), "--help"])
    elif name == "version":
        yield f"{ctx.find_root().command_path} --version"
    names = group.list_commands(ctx)
    paths = list(_paths(ctx.find_root()))
    yield from (path for path in paths if path.rpartition(" ")[2] == name)
    yield from (f"{here} {similar}" for similar in get_close_matches(name, names, FEW))
    canonical = SYNONYMS.get(name, name)
    if canonical in names:
        yield f"{here} {canonical}"
    yield from (path for path in paths if path.rpartition(" ")[2] == canonical)
    if not get_close_matches(name, names, 1):
        like = get_close_matches(name, dict.fromkeys(path.rpartition(" ")[2] for path in paths), FEW)
        yield from (path for similar in like for path in paths if path.rpartition(" ")[2] == similar)


def _paths(root: click.Context) -> Iterator[str]:
    """Yield the paths of all commands that are not groups."""
    waiting = [root]
    for ctx in waiting:
        group = ctx.command
        assert isinstance(group, click.Group)
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            if isinstance(command, click.Group):
                waiting.append(click.Context(command, info_name=name, parent=ctx))
            elif command is not None:
                yield f"{ctx.command_path} {name}"


FLEET = "it starts a process of the fleet"
OWNER = "it needs the privileges of the database owner, which a server does not have"
FILES = "it uses local files"
KEYS = "it creates and checks keys, which a server does not expose"
NAMES = "it manages the profiles of servers"
INSTALLED = "plugins are installed on each machine separately"
SETTINGS = "it reads files and variables of this machine; the settings of a server are at its /config"
BROKERS = "it needs the credentials of both brokers; a server has those of one"

DIRECTLY = {
    **dict.fromkeys(("run", "dev", "worker start", "orchestrator", "server"), FLEET),
    **dict.fromkeys(
        ("template validate", "template check-contracts", "template graph", "template show", "template schema"), FILES
    ),
    **dict.fromkeys(("generate types", "generate handlers", "generate scenarios", "generate schema"), FILES),
    **dict.fromkeys(("new", "simulate", "completion"), FILES),
    "auth create-api-key": KEYS,
    "auth generate-keys": KEYS,
    "auth generate-token": KEYS,
    "auth show-permissions": KEYS,
    "auth validate-token": KEYS,
    **dict.fromkeys((f"profile {command}" for command in ("add", "check", "list", "remove", "use")), NAMES),
    "plugin list": INSTALLED,
    "plugin show": INSTALLED,
    **dict.fromkeys(
        (
            f"config {command}"
            for command in ("diff", "docs", "explain", "generate", "import", "init", "show", "validate")
        ),
        SETTINGS,
    ),
    **dict.fromkeys(
        (
            f"db {command}"
            for command in ("check", "index-inputs", "prune", "report", "roles", "sql", "status", "upgrade")
        ),
        OWNER,
    ),
    "broker migrate": BROKERS,
}
"""Reasons by command, as typed after `tasker`."""

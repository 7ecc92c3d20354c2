"""Options that select the database, shared by several commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from math import isnan
from pathlib import Path
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.operations.operation import Operation
from tasker.redaction import without_password
from tasker.settings.addresses import DEFAULT_BACKEND
from tasker.settings.defaults import LONGEST_OPTION_SECONDS
from tasker.template.names import PRIORITY_EXPECTED, parse_priority

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
URL_VARIABLE = "DATABASE_URL"
BACKEND_VARIABLE = "TASKER_MESSAGING_BACKEND"


@dataclass(frozen=True, slots=True)
class DatabaseOption:
    """Database of a command. If `url` is None it is the embedded server of `data_dir`.

    `url_given`: the URL is from the command line, not from the environment. `backend_given`: the backend was named and
    overrides the configuration; the default does not.
    """

    url: str | None = None
    backend: str = DEFAULT_BACKEND
    data_dir: Path | None = None
    url_given: bool = False
    backend_given: bool = False

    def arguments(self) -> str:
        """Return the options that name the same database in another command, each after a space; no password."""
        url = without_password(self.url) if self.url and self.url_given else None
        backend = self.backend if self.backend != DEFAULT_BACKEND else None
        parts = {"--data-dir": self.data_dir, "--database-url": url, "--backend": backend}
        return "".join(f" {name} {quote(str(value))}" for name, value in parts.items() if value)


class NumberRange(click.FloatRange):
    """Range of floats that excludes `nan`, which compares neither below nor above a limit."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the value. Raises `BadParameter` for a value that is not a number or not in the range."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def duration(text: str) -> str:
    """Return the text of a duration with units. Raises `BadParameter` for another text."""
    from tasker.template.durations import parse_duration

    try:
        parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return text


def priority(text: str) -> int:
    """Return the number of a priority, given as a number or a name. Raises `BadParameter`."""
    number = int(text) if re.fullmatch(r"[+-]?\d{1,20}", text.strip()) else text.strip()
    if (parsed := parse_priority(number)) is None:
        raise click.BadParameter(f"{PRIORITY_EXPECTED}, got {text[:40]!r}")
    return parsed


def moment(text: str) -> datetime:
    """Return a time; without a zone it is in that of this machine. Raises `BadParameter`."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        expected = "expected a time such as '2026-01-31 18:00' or 2026-01-31T18:00:00Z"
        raise click.BadParameter(f"{expected}, got {text[:40]!r}") from None
    return parsed if parsed.tzinfo else parsed.astimezone()


def deadline(text: str) -> datetime | str:
    """Return a time, or the text of a duration. Raises `BadParameter`."""
    return moment(text) if text.strip()[4:5] == "-" else duration(text)


def bounded_option(operation: Operation[..., Any], name: str, *, help: str | None = None) -> Decorator:
    """Return the option of a number with the bounds and the default of an operation's parameter."""
    parameter = operation.parameter(name)
    kind: Any = click.IntRange if parameter.kind is int else NumberRange
    param = parameter.param
    least = param.at_least if param.above is None else param.above
    bounds = kind(least, param.at_most, min_open=param.above is not None)
    flag = f"--{name.replace('_', '-')}"
    return click.option(flag, type=bounds, default=parameter.default, show_default=True, help=help)


def limit_option(operation: Operation[..., Any]) -> Decorator:
    """Return `--limit` with the bounds and the default of an operation."""
    return bounded_option(operation, "limit", help="Maximum number of rows.")


SECONDS = NumberRange(min=0, min_open=True)
STOP_SECONDS = NumberRange(0, LONGEST_OPTION_SECONDS, min_open=True)
CONCURRENCY = click.IntRange(1, 10_000)
"""Same range as the setting `max_concurrent_handlers`."""
PRIORITY_HELP = "critical, high, normal, low, bulk or a number: the higher, the sooner.  [default: the template's]"


def database_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--database-url`, `--data-dir` and `--backend`, passed to the command as `database: DatabaseOption`."""

    @wraps(command)
    def with_database(*args: Any, database_url: str | None, data_dir: Path | None, backend: str, **rest: Any) -> Any:
        if database_url and data_dir:
            raise UsageError("--data-dir selects the embedded database and --database-url another one: give only one")
        source_of = click.get_current_context().get_parameter_source
        if database_url is not None and not database_url.strip():
            raise UsageError(
                "--database-url is empty", hint="give a URL (postgresql://USER@HOST/DATABASE), or leave the option out"
            )
        url_given = source_of("database_url") is ParameterSource.COMMANDLINE
        backend_given = source_of("backend") is not ParameterSource.DEFAULT
        database = DatabaseOption(database_url, backend, data_dir, url_given, backend_given)
        return command(*args, database=database, **rest)

    for option in reversed(_OPTIONS):
        with_database = option(with_database)
    return with_database


_OPTIONS = (
    click.option(
        "--database-url",
        metavar="URL",
        envvar=URL_VARIABLE,
        show_envvar=True,
        help="URL of a PostgreSQL database.  [default: the embedded one]",
    ),
    click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of the embedded database.  [default: .tasker/postgres]",
    ),
    click.option(
        "--backend",
        default=DEFAULT_BACKEND,
        show_default=True,
        envvar=BACKEND_VARIABLE,
        show_envvar=True,
        help="Messaging backend.",
    ),
)

"""Options that several commands share: which database to use."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import isnan
from pathlib import Path
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import LONGEST_OPTION_SECONDS
from tasker.contracts.messaging import DEFAULT_BACKEND
from tasker.contracts.rules.limits import MAX_PRIORITY, MIN_PRIORITY
from tasker.errors import UsageError
from tasker.settings.redaction import without_password

URL_VARIABLE = "DATABASE_URL"
BACKEND_VARIABLE = "TASKER_MESSAGING_BACKEND"


@dataclass(frozen=True, slots=True)
class DatabaseOption:
    """Where a command finds its tasks. `url` None means the embedded server of `data_dir`.

    `url_given` tells a URL of the command line from one of the environment, `backend_given` one that was named from the
    default, above which a configuration counts.
    """

    url: str | None = None
    backend: str = DEFAULT_BACKEND
    data_dir: Path | None = None
    url_given: bool = False
    backend_given: bool = False

    def arguments(self) -> str:
        """The options that name the same database in another command, with a space before each; no password."""
        url = without_password(self.url) if self.url and self.url_given else None
        backend = self.backend if self.backend != DEFAULT_BACKEND else None
        parts = {"--data-dir": self.data_dir, "--database-url": url, "--backend": backend}
        return "".join(f" {name} {quote(str(value))}" for name, value in parts.items() if value)


class NumberRange(click.FloatRange):
    """A range that does not hold `nan`, which is neither below nor above anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Raises `BadParameter` for what is none, and for one outside of the range."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


SECONDS = NumberRange(min=0, min_open=True)
STOP_SECONDS = NumberRange(0, LONGEST_OPTION_SECONDS, min_open=True)
CONCURRENCY = click.IntRange(1, 10_000)
"""As the setting `max_concurrent_handlers`."""
PRIORITY = click.IntRange(MIN_PRIORITY, MAX_PRIORITY)
PRIORITY_HELP = "Rank among steps that wait behind a full queue (2,000 steps by default); the higher go first."


def database_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--database-url`, `--data-dir` and `--backend`; the command gets them as `database: DatabaseOption`."""

    @wraps(command)
    def with_database(*args: Any, database_url: str | None, data_dir: Path | None, backend: str, **rest: Any) -> Any:
        if database_url and data_dir:
            raise UsageError("--data-dir is for the embedded database, and --database-url names another one")
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
        help="A PostgreSQL server's database.  [default: the embedded one]",
    ),
    click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="The embedded database's folder.  [default: .tasker/postgres]",
    ),
    click.option(
        "--backend",
        default=DEFAULT_BACKEND,
        show_default=True,
        envvar=BACKEND_VARIABLE,
        show_envvar=True,
        help="The messaging backend.",
    ),
)

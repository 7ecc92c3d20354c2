"""Database and backend of a command, and one-shot connections: connect, do one thing, print it, disconnect."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tasker.cli.loading import pause_gc
from tasker.cli.main import WANTS_JSON
from tasker.cli.options import URL_VARIABLE, DatabaseOption
from tasker.cli.render.values import echo
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.app.configured import Configured

T = TypeVar("T")

ROOT_VARIABLE = "TASKER_CONFIG_ROOT"
DEFAULT_FOLDER = Path(".tasker/postgres")


def _remember(ctx: click.Context, param: click.Parameter, form: str) -> str:
    ctx.meta[WANTS_JSON] = form == "json"
    return form


def format_option(default: str, *others: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--format` as `form`; with `json` errors are JSON objects, too."""
    forms = click.Choice([default, *others])
    return click.option("--format", "form", type=forms, default=default, show_default=True, callback=_remember)


FORMAT = format_option("text", "json")


def configured_for(
    database: DatabaseOption,
    context: str = "complete",
    *,
    no_config: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Configured:
    """Return the configuration of a command. Options override `DATABASE_URL`, which overrides the configuration file.

    `--data-dir` selects the embedded database, regardless of a file. Raises `ConfigurationError` for a missing file,
    and if the `context` needs a file and no variable names one; `ConfigurationInvalid` with every problem.
    """
    from tasker.app.configured import UNCONFIGURED, from_environment

    overrides = (
        {URL_VARIABLE: database.url} if database.url else {}
    )  # satisfies a file with a ${DATABASE_URL} placeholder
    configuration = UNCONFIGURED if no_config else from_environment(context, {**environ, **overrides})
    backend = database.backend if database.backend_given else configuration.backend
    url = None if database.data_dir else database.url or configuration.database_url
    return replace(configuration, backend=backend, database_url=url)


def known_configuration(database: DatabaseOption) -> Configured:
    """Return the configuration of a command that reads or repairs tasks; with a URL it needs no configuration file.

    A `TASKER_CONFIG_ROOT` without any file below it is ignored, with a notice. Raises the errors of `configured_for`.
    """
    root = os.environ.get(ROOT_VARIABLE)
    if not (root and database.url) or os.environ.get("TASKER_CONFIG_PATH") or any(Path(root).rglob("*.toml")):
        return configured_for(database)
    click.echo(f"there is no configuration file below {root} ({ROOT_VARIABLE}); continuing without one", err=True)
    return configured_for(database, environ={**os.environ, ROOT_VARIABLE: ""})


def connected(
    database: DatabaseOption,
    use: Callable[[App], Awaitable[T]],
    *,
    create: bool = False,
    operates: bool = False,
    several: bool = False,
) -> T:
    """Run `use` with an app that submits and reads but runs no steps, and return its result.

    With `operates` the actor is recorded in the audit log; with `several` that record is written before anything is
    done. Raises `UsageError` if there is no embedded database yet, unless `create` is set.
    """
    chosen = known_configuration(database)
    if not create:
        require_database(chosen.database_url, database.data_dir)
    action = partial(_recorded, use=use, several=several) if operates else use
    return asyncio.run(_use(chosen, database.data_dir, action))


@contextmanager
def database_at(chosen: Configured, data_dir: Path | None) -> Iterator[str]:
    """Yield the URL of the database; an embedded server runs in the meantime if no other database is configured."""
    from tasker.db.embedded import DEFAULT_DATA_DIR, EmbeddedServer

    if chosen.database_url is not None:
        yield chosen.database_url
        return
    server = EmbeddedServer.start(data_dir or DEFAULT_DATA_DIR)
    try:
        yield server.url
    finally:
        server.stop()


def require_database(url: str | None, data_dir: Path | None) -> None:
    """Raise `UsageError` if there is no embedded database yet."""
    folder = data_dir or DEFAULT_FOLDER
    if url is None and not (folder / "data").exists():
        raise UsageError(
            f"no database in {folder}",
            hint="`tasker run PATH` creates one; or change to the folder where you ran it, or give a database: "
            "--database-url, DATABASE_URL, or a configuration file (TASKER_CONFIG_PATH)",
        )


async def _use(chosen: Configured, data_dir: Path | None, use: Callable[[App], Awaitable[T]]) -> T:
    async with opened(chosen, data_dir) as app:
        return await use(app)


async def _recorded(app: App, use: Callable[[App], Awaitable[T]], several: bool) -> T:
    from tasker.cli.operating import recorded

    return await recorded(app, use, several=several)


@asynccontextmanager
async def opened(chosen: Configured, data_dir: Path | None) -> AsyncIterator[App]:
    """Yield an app that submits and reads but runs no steps."""
    with pause_gc():
        from tasker.app.command_app import CommandApp

    async with CommandApp(configuration=chosen, data_dir=data_dir, work=False) as app:
        yield app


def print_as(form: str, value: Any, render: Callable[[Any], str]) -> None:
    """Print the value as indented JSON, or as the text that `render` makes of it."""
    text = json.dumps(value, default=plain, ensure_ascii=False, indent=2) if form == "json" else render(value)
    echo(text)


def actor() -> str:
    """Return the name of the operating system's user, as the actor."""
    from tasker.services.audit import os_user

    return os_user()


def plain(value: Any) -> Any:
    """Convert a value that JSON cannot represent: dataclasses to objects, times to ISO 8601."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)

"""Which database and backend a command uses; and short commands: connect, do one thing, print it, leave."""

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
    """Adds `--format`, as `form`; with `json` an error is an object, too."""
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
    """What a command is made with: options count above `DATABASE_URL`, that above the configuration file.

    `--data-dir` names the embedded database, whatever a file says. Raises `ConfigurationError` for a file that is
    missing, or that no variable names and the `context` needs, and `ConfigurationInvalid` with every problem.
    """
    from tasker.app.configured import UNCONFIGURED, from_environment

    given = {URL_VARIABLE: database.url} if database.url else {}  # a file that asks for the variable has it
    found = UNCONFIGURED if no_config else from_environment(context, {**environ, **given})
    backend = database.backend if database.backend_given else found.backend
    url = None if database.data_dir else database.url or found.database_url
    return replace(found, backend=backend, database_url=url)


def known_configuration(database: DatabaseOption) -> Configured:
    """As `configured_for`, of a command that looks at tasks or mends them: it needs no file where it has a URL, and a
    `TASKER_CONFIG_ROOT` below which there is none at all is left aside, which is said. Raises as that does."""
    root = os.environ.get(ROOT_VARIABLE)
    if not (root and database.url) or os.environ.get("TASKER_CONFIG_PATH") or any(Path(root).rglob("*.toml")):
        return configured_for(database)
    click.echo(f"there is no configuration file below {root} ({ROOT_VARIABLE}); going on without one", err=True)
    return configured_for(database, environ={**os.environ, ROOT_VARIABLE: ""})


def connected(
    database: DatabaseOption,
    use: Callable[[App], Awaitable[T]],
    *,
    create: bool = False,
    operates: bool = False,
    several: bool = False,
) -> T:
    """What `use` returns for an app that submits and reads, and runs no steps.

    With `operates` it is kept who gave the command, with `several` before anything is done. Raises `UsageError` where
    no embedded database has been made yet, unless `create` is set.
    """
    chosen = known_configuration(database)
    if not create:
        require_database(chosen.database_url, database.data_dir)
    kept = partial(_recorded, use=use, several=several) if operates else use
    return asyncio.run(_use(chosen, database.data_dir, kept))


@contextmanager
def database_at(chosen: Configured, data_dir: Path | None) -> Iterator[str]:
    """The URL of the database, whose embedded server runs meanwhile where there is no other."""
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
    """Raise `UsageError` where no embedded database has been made yet."""
    folder = data_dir or DEFAULT_FOLDER
    if url is None and not (folder / "data").exists():
        raise UsageError(
            f"nothing has run here: there is no database in {folder}",
            hint="`tasker run PATH` makes one; or go to the folder where you ran it, or name a database: "
            "--database-url, DATABASE_URL, or a configuration file (TASKER_CONFIG_PATH)",
        )


async def _use(chosen: Configured, data_dir: Path | None, use: Callable[[App], Awaitable[T]]) -> T:
    async with opened(chosen, data_dir) as app:
        return await use(app)


async def _recorded(app: App, use: Callable[[App], Awaitable[T]], several: bool) -> T:
    from tasker.cli.place.operating import recorded

    return await recorded(app, use, several=several)


@asynccontextmanager
async def opened(chosen: Configured, data_dir: Path | None) -> AsyncIterator[App]:
    """An app that submits and reads, and runs no steps."""
    with pause_gc():
        from tasker.app.embedded.short import CommandApp

    async with CommandApp(configuration=chosen, data_dir=data_dir, work=False) as app:
        yield app


def print_as(form: str, value: Any, render: Callable[[Any], str]) -> None:
    """The value as indented JSON, or as the text that `render` makes of it."""
    text = json.dumps(value, default=plain, ensure_ascii=False, indent=2) if form == "json" else render(value)
    echo(text)


def actor() -> str:
    """The user's name, for the history."""
    from tasker.services.by_hand import os_user

    return os_user()


def plain(value: Any) -> Any:
    """What JSON has no form for: values as objects, times in ISO 8601."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)

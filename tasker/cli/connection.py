"""Short commands on a database: connect, do one thing, print it, leave."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tasker.cli.options import Database
from tasker.cli.render_values import echo
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.app import App

T = TypeVar("T")

DEFAULT_FOLDER = Path(".tasker/postgres")
FORMAT = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


def connected(database: Database, use: Callable[[App], Awaitable[T]], *, create: bool = False) -> T:
    """What `use` returns for an app that submits and reads, and runs no steps.

    Raises `UsageError` where no embedded database has been made yet, unless `create` is set.
    """
    if not create:
        require_database(database.url, database.data_dir)
    return asyncio.run(_use(database, use))


def require_database(url: str | None, data_dir: Path | None) -> None:
    """Raise `UsageError` where no embedded database has been made yet."""
    folder = data_dir or DEFAULT_FOLDER
    if url is None and not folder.exists():
        raise UsageError(
            f"nothing has run here: there is no database in {folder}",
            hint="`tasker run PATH` makes one; or go to the folder where you ran it, or give --database-url",
        )


async def _use(database: Database, use: Callable[[App], Awaitable[T]]) -> T:
    from tasker.app import App

    app = App(database.url, backend=database.backend, data_dir=database.data_dir, work=False)
    async with app:
        return await use(app)


def print_as(form: str, value: Any, render: Callable[[Any], str]) -> None:
    """The value as indented JSON, or as the text that `render` makes of it."""
    text = json.dumps(value, default=_plain, ensure_ascii=False, indent=2) if form == "json" else render(value)
    echo(text)


def actor() -> str:
    """The user's name, for the history."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)

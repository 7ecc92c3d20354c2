"""Options by which a command that reads or changes a fleet is told where that is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from tasker.cli.options import Database, database_options
from tasker.cli.place.operating import recorded
from tasker.cli.place.places import DatabasePlace, Place, ServerPlace
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.client.http.server import Server

T = TypeVar("T")
URL, PROFILE = "TASKER_URL", "TASKER_PROFILE"
TOKENS = ("TASKER_ORCHESTRATION_AUTH_TOKEN", "TASKER_AUTH_TOKEN", "TASKER_TOKEN")
API_KEY, API_KEY_HEADER, CA_FILE = "TASKER_API_KEY", "TASKER_API_KEY_HEADER", "TASKER_CA_FILE"
OF_DATABASES = {"database_url": "--database-url", "data_dir": "--data-dir", "backend": "--backend"}


def fleet_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--url` and `--profile` beside the options of a database; the command gets them as `place: Place`.

    What the command line says counts most, then `TASKER_URL`, `TASKER_PROFILE`, and the profile in use; without any of
    them the database is asked directly.
    """

    @wraps(command)
    def with_place(*args: Any, database: Database, url: str | None, profile: str | None, **rest: Any) -> Any:
        return command(*args, place=_place(database, url, profile), **rest)

    return _URL(_PROFILE(database_options(with_place)))


def reached(place: Place, use: Callable[[Fleet], Awaitable[T]], *, operates: bool = False) -> T:
    """What `use` returns for the fleet of that place. With `operates` it is kept who gave the command."""

    async def using() -> T:
        async with place.fleet() as fleet:
            return await (recorded(fleet, use) if operates else use(fleet))

    return asyncio.run(using())


def complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of profiles that begin so, for the shell."""
    from tasker.client.profiles import profiles_file, read_profiles

    try:
        known = read_profiles(profiles_file()).servers
    except UsageError:
        return []
    return [CompletionItem(name, help=server.url) for name, server in known.items() if name.startswith(incomplete)]


_URL = click.option("--url", metavar="URL", help=f"Ask this Tasker server, not a database.  [env var: {URL}]")
_PROFILE = click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profiles,
    help=f"Ask the server of this profile (tasker profile).  [env var: {PROFILE}]",
)


def _place(database: Database, url: str | None, profile: str | None) -> Place:
    given = [name for name, text in (("--url", url), ("--profile", profile)) if text is not None]
    source_of = click.get_current_context().get_parameter_source
    databases = [text for name, text in OF_DATABASES.items() if source_of(name) is ParameterSource.COMMANDLINE]
    if len(given) > 1 or (given and databases):
        both = " and ".join([*given, *databases])
        raise UsageError(f"{both} name different places", hint="give a server or a database, and only one")
    if databases:
        return DatabasePlace(database)
    if url is not None:
        return ServerPlace(_server(url), ("--url", url))
    if profile is not None:
        return ServerPlace(_profiles().get(profile), ("--profile", profile))
    return _unnamed(database)


def _unnamed(database: Database) -> Place:
    """What the environment names, else the profile in use, else the database."""
    if url := os.environ.get(URL):
        return ServerPlace(_server(url))
    profiles = _profiles()
    if name := os.environ.get(PROFILE) or profiles.active:
        return ServerPlace(profiles.get(name))
    return DatabasePlace(database)


def _server(url: str) -> Server:
    """The server of a URL, with what the environment has of credentials: a token counts above a key (F-283)."""
    from tasker.client.http.server import Server
    from tasker.contracts.defaults.authentication import KEY_HEADER

    token = next(filter(None, map(os.environ.get, TOKENS)), None)
    api_key, header, ca_file = (os.environ.get(name) or None for name in (API_KEY, API_KEY_HEADER, CA_FILE))
    return Server(url, token, None if token else api_key, Path(ca_file) if ca_file else None, header or KEY_HEADER)


def _profiles() -> Any:
    from tasker.client.profiles import profiles_file, read_profiles

    return read_profiles(profiles_file())

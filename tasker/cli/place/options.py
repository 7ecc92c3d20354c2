"""Options that name the fleet of a command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from tasker.cli.options import DatabaseOption, database_options
from tasker.cli.place.operating import recorded
from tasker.cli.place.places import DatabaseTarget, FleetTarget, ServerTarget
from tasker.client.naming import PROFILE, URL, server_at, server_of_environment
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet

T = TypeVar("T")
OF_DATABASES = {"database_url": "--database-url", "data_dir": "--data-dir", "backend": "--backend"}


def fleet_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--url` and `--profile` and the database options, passed to the command as `place: FleetTarget`.

    The command line takes precedence, then `TASKER_URL`, `TASKER_PROFILE`, and the active profile; without any of them
    the database is used directly.
    """

    @wraps(command)
    def with_place(*args: Any, database: DatabaseOption, url: str | None, profile: str | None, **rest: Any) -> Any:
        return command(*args, place=_place(database, url, profile), **rest)

    return _URL(_PROFILE(database_options(with_place)))


def run_on_fleet(place: FleetTarget, use: Callable[[Fleet], Awaitable[T]], *, operates: bool = False) -> T:
    """Run `use` on the target fleet and return its result. With `operates` the actor is recorded in the audit log."""

    async def using() -> T:
        async with place.fleet() as fleet:
            return await (recorded(fleet, use) if operates else use(fleet))

    return asyncio.run(using())


def complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of profiles for the shell."""
    from tasker.client.profiles import profiles_file, read_profiles

    try:
        known = read_profiles(profiles_file()).servers
    except UsageError:
        return []
    return [CompletionItem(name, help=server.url) for name, server in known.items() if name.startswith(incomplete)]


_URL = click.option(
    "--url", metavar="URL", help=f"URL of a Tasker server, used instead of a database.  [env var: {URL}]"
)
_PROFILE = click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profiles,
    help=f"Profile of the server to use (see tasker profile).  [env var: {PROFILE}]",
)


def _place(database: DatabaseOption, url: str | None, profile: str | None) -> FleetTarget:
    given = [name for name, text in (("--url", url), ("--profile", profile)) if text is not None]
    source_of = click.get_current_context().get_parameter_source
    databases = [text for name, text in OF_DATABASES.items() if source_of(name) is ParameterSource.COMMANDLINE]
    if len(given) > 1 or (given and databases):
        both = " and ".join([*given, *databases])
        raise UsageError(f"{both} exclude each other", hint="give either a server or a database")
    if databases:
        return DatabaseTarget(database)
    if url is not None:
        return ServerTarget(server_at(url), ("--url", url))
    if profile is not None:
        return ServerTarget(_profiles().get(profile), ("--profile", profile))
    return _unnamed(database)


def _unnamed(database: DatabaseOption) -> FleetTarget:
    """Return the server of the environment, else of the active profile, else the database."""
    if server := server_of_environment():
        return ServerTarget(server)
    profiles = _profiles()
    return ServerTarget(profiles.get(profiles.active)) if profiles.active else DatabaseTarget(database)


def _profiles() -> Any:
    from tasker.client.profiles import profiles_file, read_profiles

    return read_profiles(profiles_file())

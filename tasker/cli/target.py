"""Target of a command: a database or a server, and the services of either."""

from __future__ import annotations

import asyncio
import string
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from tasker.cli.connection import known_configuration, opened, require_database
from tasker.cli.operating import recorded
from tasker.cli.options import DatabaseOption, database_options
from tasker.client.servers import PROFILE, URL, server_at, server_of_environment
from tasker.dataclasses import dataclass
from tasker.errors import NotPermitted, TaskNotFound, UsageError

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet, PlanService, TaskService
    from tasker.client.servers import ServerAddress

Found = TypeVar("Found", bound=Sequence[object])


class HasPlans(Protocol):
    """Fleet with templates."""

    @property
    def plans(self) -> PlanService:
        """Registered templates of the fleet."""
        ...


async def require_known_filter(app: HasPlans, rows: Found, namespace: str | None, template: str | None = None) -> Found:
    """Return the result of a query; raise `UsageError` if it is empty and a name in its filter does not exist.

    A caller who may not list templates gets no such error.
    """
    if rows or not (namespace or template):
        return rows
    from tasker.engine.plans import TemplateFilter
    from tasker.services.workflows.targets import MOST_NAMES

    try:
        if await app.plans.registered(TemplateFilter(namespace, template), limit=1):
            return rows
        if namespace is not None and not await app.plans.registered(TemplateFilter(namespace), limit=1):
            known = await app.plans.registered(limit=MOST_NAMES)
            require("namespace", namespace, {row["namespace"] for row in known})
        known = await app.plans.registered(TemplateFilter(namespace), limit=MOST_NAMES)
    except NotPermitted:
        return rows
    require("template", template or "", {row["name"] for row in known})
    return rows


def require(what: str, name: str, known: set[str]) -> None:
    """Raise `UsageError` with similar names for an unknown name."""
    from tasker.template.diagnostics import did_you_mean

    if name not in known:
        hint = did_you_mean(name, sorted(known)) or "see `tasker template list`"
        raise UsageError(f"there is no {what} {name!r}", hint=hint)


class FleetTarget(Protocol):
    """Target fleet of a command."""

    @property
    def runs_here(self) -> bool:
        """True if `tasker run --resume` can continue a task in this shell."""
        ...

    def arguments(self) -> str:
        """Return the options that name the same target in another command, each with a leading space; no secrets."""
        ...

    def fleet(self) -> AbstractAsyncContextManager[Fleet]:
        """Open the fleet for the duration of the block."""
        ...


@dataclass(frozen=True, slots=True)
class DatabaseTarget:
    """Fleet accessed through its database."""

    database: DatabaseOption

    @property
    def runs_here(self) -> bool:
        """True: this shell can access the database."""
        return True

    def arguments(self) -> str:
        return self.database.arguments()

    @asynccontextmanager
    async def fleet(self) -> AsyncIterator[Fleet]:
        """Open an app that submits and reads. Raises `UsageError` if there is no embedded database yet."""
        chosen = known_configuration(self.database)
        require_database(chosen.database_url, self.database.data_dir)
        async with opened(chosen, self.database.data_dir) as app:
            yield app


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """Fleet accessed through a server. `named` holds the options that named it on the command line, if any."""

    server: ServerAddress
    named: tuple[str, ...] = ()

    @property
    def runs_here(self) -> bool:
        """False: steps run where the database is accessible."""
        return False

    def arguments(self) -> str:
        return "".join(f" {quote(argument)}" for argument in self.named)

    @asynccontextmanager
    async def fleet(self) -> AsyncIterator[Fleet]:
        """Open a client of the server. Nothing is sent before the command makes a request."""
        from tasker.cli.connection import actor
        from tasker.cli.remote.http_fleet import HttpFleet
        from tasker.client.http_client import HttpClient

        async with HttpClient(self.server, initiator=actor(), source_system="tasker") as client:
            yield HttpFleet(client)


T = TypeVar("T")
OF_DATABASES = {"database_url": "--database-url", "data_dir": "--data-dir", "backend": "--backend"}


def fleet_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--url` and `--profile` and the database options, passed to the command as `place: FleetTarget`.

    The command line takes precedence, then `TASKER_URL`, `TASKER_PROFILE`, and the active profile; without any of them
    the database is used directly.
    """

    @wraps(command)
    def with_place(*args: Any, database: DatabaseOption, url: str | None, profile: str | None, **rest: Any) -> Any:
        return command(*args, place=_fleet_target(database, url, profile), **rest)

    return _URL(_PROFILE(database_options(with_place)))


def run_on_fleet(place: FleetTarget, use: Callable[[Fleet], Awaitable[T]], *, operates: bool = False) -> T:
    """Run `use` on the target fleet and return its result. With `operates` the actor is recorded in the audit log."""

    async def using() -> T:
        async with place.fleet() as fleet:
            return await (recorded(fleet, use) if operates else use(fleet))

    return asyncio.run(using())


def complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of profiles for the shell."""
    from tasker.client.servers import profiles_file, read_profiles

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


def _fleet_target(database: DatabaseOption, url: str | None, profile: str | None) -> FleetTarget:
    server_options = [name for name, text in (("--url", url), ("--profile", profile)) if text is not None]
    source_of = click.get_current_context().get_parameter_source
    databases = [text for name, text in OF_DATABASES.items() if source_of(name) is ParameterSource.COMMANDLINE]
    if len(server_options) > 1 or (server_options and databases):
        both = " and ".join([*server_options, *databases])
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
    from tasker.client.servers import profiles_file, read_profiles

    return read_profiles(profiles_file())


SHORTEST = 8
LENGTH = 32


def looks_like_a_task(text: str) -> bool:
    """Return whether the text may be the prefix of a task's identifier."""
    digits = text.replace("-", "").lower()
    return SHORTEST <= len(digits) <= LENGTH and not set(digits) - set(string.hexdigits)


async def find_task(tasks: TaskService, text: str) -> str:
    """Return the complete identifier. Raises `UsageError` for an invalid or ambiguous prefix, `TaskNotFound`."""
    digits = text.replace("-", "").lower()
    if not digits or set(digits) - set(string.hexdigits) or len(digits) > LENGTH:
        raise UsageError(f"{text!r} is not a task id", hint="expected a UUID; see `tasker task list`")
    if len(digits) < SHORTEST:
        raise UsageError(f"{text!r} is too short for a task id", hint=f"give at least {SHORTEST} characters")
    matches = await tasks.starting_with(digits)
    if not matches:
        raise TaskNotFound(f"no task {text} in this database", hint="see `tasker task list`")
    if len(matches) > 1:
        listing = "".join(f"\n  {uuid}" for uuid in matches)
        raise UsageError(f"{text} matches several tasks:{listing}", hint="give more characters")
    return matches[0]

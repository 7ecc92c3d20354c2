"""`tasker profile`: add servers, choose the active one, check a server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import complete_profiles
from tasker.client.connection import NEVER
from tasker.client.http_client import HttpClient
from tasker.client.servers import Profiles, ServerAddress, profiles_file, read_profiles, write_profiles
from tasker.errors import UsageError

NAME = click.argument("name", metavar="NAME", shell_complete=complete_profiles)


@click.group(cls=GuessingGroup)
def profile() -> None:
    """Name Tasker servers, and choose the one that commands use instead of a database.

    Profiles are stored in ~/.config/tasker/profiles.toml (or below XDG_CONFIG_HOME), readable by you only. A command
    uses --url or --profile, else TASKER_URL or TASKER_PROFILE, else the active profile, else the database.
    """


@profile.command()
@NAME
@click.option("--url", required=True, metavar="URL", help="URL of the server.")
@click.option("--token-file", metavar="FILE|-", help="File with a bearer token; - is standard input.")
@click.option("--api-key-file", metavar="FILE|-", help="File with an API key; - is standard input.")
@click.option("--ca-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="CA certificates (PEM).")
@click.option("--use", is_flag=True, help="Make this the active profile.")
@FORMAT
def add(
    name: str,
    url: str,
    token_file: str | None,
    api_key_file: str | None,
    ca_file: Path | None,
    use: bool,
    form: str,
) -> None:
    """Add or replace a profile. Secrets are read from files, so that they do not appear in process lists.

    \b
    Examples:
      tasker profile add local --url http://localhost:8080 --use
      tasker profile add prod --url https://tasker.example.com --token-file token.txt
    """
    server = ServerAddress(url, _secret(token_file), _secret(api_key_file), ca_file and ca_file.absolute())
    server.headers()
    server.trust()
    if _credentials(server) and not server.keeps_secrets():
        click.echo(f"Warning: {url} is not encrypted; credentials are sent in plain text", err=True)
    profiles = read_profiles(profiles_file()).with_server(name, server)
    profiles = profiles.using(name) if use else profiles
    write_profiles(profiles_file(), profiles)
    print_as(form, _row(profiles, name), _added_text)


@profile.command()
@click.argument("name", metavar="NAME", required=False, shell_complete=complete_profiles)
@click.option("--none", is_flag=True, help="Use no profile: commands connect to the database.")
@FORMAT
def use(name: str | None, none: bool, form: str) -> None:
    """Make a profile active: commands use its server unless another target is named."""
    if (name is None) is not none:
        raise UsageError("expected a NAME or --none", hint="tasker profile use NAME, or tasker profile use --none")
    write_profiles(profiles_file(), read_profiles(profiles_file()).using(name))
    print_as(form, {"in_use": name}, lambda done: f"commands now use {done['in_use'] or 'the database'}")


@profile.command("list")
@FORMAT
def list_(form: str) -> None:
    """List the profiles. Secrets are not shown."""
    print_as(form, _rows(read_profiles(profiles_file())), _list_text)


@profile.command()
@NAME
@FORMAT
def remove(name: str, form: str) -> None:
    """Remove a profile with its secrets."""
    write_profiles(profiles_file(), read_profiles(profiles_file()).without(name))
    print_as(form, {"removed": name}, lambda done: f"removed {done['removed']}")


@profile.command()
@click.argument("name", metavar="NAME", required=False, shell_complete=complete_profiles)
@FORMAT
def check(name: str | None, form: str) -> None:
    """Check that a server responds, is a Tasker server, and accepts the credentials; by default the active profile.

    \b
    Exit codes:
      0  it responds, and the credentials may read
      1  it cannot be reached, is not a Tasker server, refuses the credentials, or is unhealthy
      2  there is no such profile
    """
    profiles = read_profiles(profiles_file())
    chosen = name or profiles.active
    if chosen is None:
        raise UsageError("no active profile", hint="tasker profile check NAME, or tasker profile use NAME")
    health = asyncio.run(_checked(profiles.get(chosen)))
    print_as(form, {"name": chosen, **health}, _check_text)
    raise SystemExit(0 if health["status"] == "healthy" else 1)


async def _checked(server: ServerAddress) -> dict[str, Any]:
    async with HttpClient(server, timeout=10, retries=NEVER) as client:
        version = (await client.description())["info"]["version"]
        health = await client.health_check()
        await client.list_templates(per_page=1)
        return {"url": server.url, "version": version, "status": health.status}


def _secret(file: str | None) -> str | None:
    """Read a secret from a file or standard input. Raises `UsageError` if it is unreadable or empty."""
    if file is None:
        return None
    try:
        secret = (sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")).strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not secret:
        raise UsageError(f"{file} is empty", hint="it must contain the token or API key and nothing else")
    return secret


def _rows(profiles: Profiles) -> list[dict[str, Any]]:
    return [_row(profiles, name) for name in sorted(profiles.servers)]


def _row(profiles: Profiles, name: str) -> dict[str, Any]:
    server = profiles.servers[name]
    return {"name": name, "url": server.url, "credentials": _credentials(server), "in_use": name == profiles.active}


def _added_text(row: dict[str, Any]) -> str:
    then = ", now active" if row["in_use"] else f"; to use it: tasker profile use {row['name']}"
    return f"added {row['name']}: {row['url']}{then}"


def _credentials(server: ServerAddress) -> str | None:
    return "token" if server.token else "API key" if server.api_key else None


def _list_text(rows: list[dict[str, Any]]) -> str:
    from tasker.cli.render.values import table

    if not rows:
        return "no profiles; tasker profile add creates one"
    lines = [(row["name"], row["url"], row["credentials"] or "-", "in use" if row["in_use"] else "") for row in rows]
    return table(("profile", "url", "credentials", ""), lines)


def _check_text(check: dict[str, Any]) -> str:
    return f"{check['name']}: Tasker {check['version']} at {check['url']} is {check['status']}"

"""`tasker auth`: API keys and tokens."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands.server import require_libraries
from tasker.cli.connection import FORMAT, configured_for, print_as
from tasker.cli.options import DatabaseOption
from tasker.cli.suggestions import GuessingGroup
from tasker.errors import UsageError
from tasker.settings.toml_text import toml_value

if TYPE_CHECKING:
    from tasker.settings.http import Auth

PEM = click.Path(path_type=Path)


def _names(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


PERMISSIONS = click.option(
    "--permissions",
    callback=_names,
    required=True,
    metavar="A,B",
    help="Permissions, such as tasks:create,tasks:read, tasks:* or *; `tasker auth show-permissions` lists them.",
)
NAMESPACES = click.option(
    "--namespaces", callback=_names, default="", metavar="A,B", help="Namespaces it is limited to."
)
TENANTS = click.option(
    "--tenants", callback=_names, default="", metavar="A,B", help="Tenants whose tasks the key may access."
)


def auth_settings() -> Auth:
    """Return the configured settings. Raises `UsageError` if the extra `api` is not installed."""
    require_libraries("working with keys and tokens", ("cryptography", "jwt"))
    return configured_for(DatabaseOption()).http.auth


def require_permissions(permissions: tuple[str, ...]) -> None:
    """Raise `UsageError` for unknown permissions."""
    from tasker.operations.permissions import grants_of

    _, unknown = grants_of(permissions)
    if unknown:
        raise UsageError(
            f"no such permission: {', '.join(unknown)}", hint="run `tasker auth show-permissions` for the list"
        )


def text_of(file: Path) -> str:
    """Return the text of a file. Raises `UsageError` if it cannot be read."""
    from tasker.server.auth.authenticator import read

    return read(str(file), str(file))


PRIVATE, PUBLIC = "jwt-private-key.pem", "jwt-public-key.pem"
PRIVATE_MODE, PUBLIC_MODE = 0o600, 0o644


@click.command("generate-keys")
@click.option(
    "--output-dir", type=click.Path(file_okay=False, path_type=Path), default=".", help="Directory for the files."
)
@click.option(
    "--key-size", type=click.IntRange(2048, 16_384), default=2048, show_default=True, help="Key size in bits."
)
@FORMAT
def generate_keys(output_dir: Path, key_size: int, form: str) -> None:
    """Generate a key pair: a private key that signs tokens, readable by its owner only, and a public key.

    Existing files are never overwritten.
    """
    auth_settings()
    from tasker.server.auth.verification_keys import generate

    private, public = output_dir / PRIVATE, output_dir / PUBLIC
    if existing := [str(file) for file in (private, public) if file.exists()]:
        raise UsageError(
            f"{' and '.join(existing)} already exists", hint="choose another folder, or move the existing files"
        )
    secret, public_key = generate(key_size)
    output_dir.mkdir(parents=True, exist_ok=True)
    _write([(private, secret, PRIVATE_MODE), (public, public_key, PUBLIC_MODE)])
    print_as(form, {"private_key": str(private), "public_key": str(public)}, _files_text)


def _write(files: Sequence[tuple[Path, str, int]]) -> None:
    """Write all files or none; never overwrite an existing file."""
    written: list[Path] = []
    try:
        for path, text, mode in files:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            written.append(path)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
    except OSError as error:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise UsageError(f"cannot write {error.filename}: {error.strerror}", hint="choose another folder") from None


def _files_text(files: Mapping[str, str]) -> str:
    private, public = files["private_key"], files["public_key"]
    return (
        f"{private}  private key: signs tokens; keep it secret\n"
        f"{public}  public key: verifies tokens; set it as jwt_public_key_path of a server"
    )


@click.command("generate-token")
@click.option("--subject", required=True, metavar="NAME", help="Subject of the token; recorded in the audit log.")
@PERMISSIONS
@NAMESPACES
@TENANTS
@click.option(
    "--private-key", type=PEM, metavar="FILE", help="Private key that signs it (default: the configured one)."
)
@click.option(
    "--expiry-hours", type=click.IntRange(1, 720), help="Lifetime in hours (default: the configured one, 24)."
)
@click.option("--key-id", metavar="KID", help="Key id (`kid` header), for servers that fetch keys from a URL.")
@FORMAT
def generate_token(
    subject: str,
    permissions: tuple[str, ...],
    namespaces: tuple[str, ...],
    tenants: tuple[str, ...],
    private_key: Path | None,
    expiry_hours: int | None,
    key_id: str | None,
    form: str,
) -> None:
    """Sign a token for the configured issuer and audience, and print it.

    \b
    Example:
      tasker auth generate-token --private-key jwt-private-key.pem --subject ada --permissions "tasks:*,steps:read"
    """
    require_permissions(permissions)
    settings = auth_settings()
    from tasker.server.auth.tokens import TokenOrder, sign
    from tasker.server.auth.verification_keys import private_key as key_in

    if private_key is None and not settings.jwt_private_key:
        raise UsageError("no private key to sign with", hint="give --private-key FILE")
    pem, where = (
        (text_of(private_key), str(private_key)) if private_key else (settings.jwt_private_key, "jwt_private_key")
    )
    hours = expiry_hours or settings.jwt_token_expiry_hours
    order = TokenOrder(subject, permissions, hours, namespaces, key_id, tenants)
    token = sign(order, key_in(pem, where), settings)
    print_as(form, {"token": token, "expires_in_hours": order.hours}, lambda made: str(made["token"]))


@click.command("create-api-key")
@click.option("--name", required=True, metavar="NAME", help="Owner of the key; recorded in the audit log.")
@PERMISSIONS
@NAMESPACES
@TENANTS
@FORMAT
def create_api_key(
    name: str, permissions: tuple[str, ...], namespaces: tuple[str, ...], tenants: tuple[str, ...], form: str
) -> None:
    """Create an API key, and the configuration entry that holds its digest. The key is shown only once."""
    require_permissions(permissions)
    from tasker.server.auth.authenticator import digest, new_key

    key = new_key()
    entry = {"key": digest(key), "name": name, "permissions": [*permissions]}
    if namespaces:
        entry["namespaces"] = [*namespaces]
    if tenants:
        entry["tenants"] = [*tenants]
    print_as(form, {"api_key": key, "configuration": entry}, _key_text)


def _key_text(made: Mapping[str, Any]) -> str:
    lines = [f"{name} = {toml_value(value)}" for name, value in made["configuration"].items()]
    return "\n".join([made["api_key"], "", "[[orchestration.web.auth.api_keys]]", *lines])


@click.group(cls=GuessingGroup)
def auth() -> None:
    """Make and check keys and tokens for the HTTP API; see docs/security.md."""


auth.add_command(generate_keys)
auth.add_command(generate_token)
auth.add_command(create_api_key)


@auth.command("show-permissions")
@FORMAT
def show_permissions(form: str) -> None:
    """List the permissions that a token or a key can have.

    `RESOURCE:*` is every permission of a resource and `*` is everything. With `:NAMESPACE` appended, a permission
    applies to that namespace only, such as `tasks:create:payments`.
    """
    from tasker.operations.permissions import MEANINGS

    print_as(form, {str(permission): meaning for permission, meaning in MEANINGS.items()}, _permissions_text)


def _permissions_text(meanings: Mapping[str, str]) -> str:
    lines: list[str] = []
    for word, meaning in meanings.items():
        resource = word.partition(":")[0]
        if f"{resource}:*" not in lines:
            lines.append(f"{resource}:*")
        lines.append(f"  {word:<24}{meaning}")
    return "\n".join(lines)


@auth.command("validate-token")
@click.option("--token", required=True, metavar="TOKEN|-", help="The token; - reads it from standard input.")
@click.option(
    "--public-key", type=PEM, metavar="FILE", help="Public key that verifies it (default: the configured one)."
)
@FORMAT
def validate_token(token: str, public_key: Path | None, form: str) -> None:
    """Check a token as a server would, and show its claims.

    Exit code 1 for a token that a server would refuse.

    \b
    Example:
      tasker auth validate-token --token "$TOKEN" --public-key jwt-public-key.pem
    """
    encoded = sys.stdin.read().strip() if token == "-" else token
    print_as(form, asyncio.run(_verified_token(encoded, auth_settings(), public_key)), _token_text)


async def _verified_token(token: str, settings: Auth, public_key: Path | None) -> dict[str, Any]:
    from tasker.server.auth.authenticator import verification_keys
    from tasker.server.auth.tokens import TokenReader
    from tasker.server.auth.verification_keys import OneKey
    from tasker.server.auth.verification_keys import public_key as key_in

    where = str(public_key)
    keys = OneKey(key_in(text_of(public_key), where)) if public_key else verification_keys(settings)
    if keys is None:
        raise UsageError("no key to verify the token", hint="give --public-key FILE")
    reader = TokenReader(keys, settings)
    caller, claims = await reader.caller(token), await reader.claims(token)
    return {
        "subject": caller.name,
        "permissions": sorted(claims.get(settings.permissions_claim, [])),
        "namespaces": None if caller.confined_to is None else sorted(caller.confined_to),
        **({} if caller.tenants is None else {"tenants": sorted(caller.tenants)}),
        "issuer": claims["iss"],
        "audience": claims["aud"],
        "expires_at": datetime.fromtimestamp(claims["exp"], UTC).isoformat(),
    }


def _token_text(token: Mapping[str, Any]) -> str:
    where = "every namespace" if token["namespaces"] is None else ", ".join(token["namespaces"]) or "no namespace"
    return "\n".join(
        [
            f"valid until {token['expires_at']}",
            f"subject      {token['subject']}",
            f"permissions  {', '.join(token['permissions']) or 'none'}",
            f"in           {where}",
            *([f"tenants      {', '.join(token['tenants']) or 'none'}"] if "tenants" in token else []),
            f"issuer       {token['issuer']}, for {token['audience']}",
        ]
    )

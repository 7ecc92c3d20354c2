"""`tasker auth`: keys and tokens for the HTTP API."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.auth.making import create_api_key, generate_keys, generate_token
from tasker.cli.auth.options import PEM, auth_settings, text_of
from tasker.cli.connection import FORMAT, print_as
from tasker.cli.guessing import GuessingGroup
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.services.authentication.settings import AuthSettings


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
    from tasker.contracts.rules.permissions import MEANINGS

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
    given = sys.stdin.read().strip() if token == "-" else token
    print_as(form, asyncio.run(_told(given, auth_settings(), public_key)), _token_text)


async def _told(token: str, settings: AuthSettings, public_key: Path | None) -> dict[str, Any]:
    from tasker.services.authentication.authenticator import verification_keys
    from tasker.services.authentication.rsa_keys import public_key as key_in
    from tasker.services.authentication.tokens import TokenReader
    from tasker.services.authentication.verification_keys import OneKey

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
        "issuer": claims["iss"],
        "audience": claims["aud"],
        "expires_at": datetime.fromtimestamp(claims["exp"], UTC).isoformat(),
    }


def _token_text(told: Mapping[str, Any]) -> str:
    where = "every namespace" if told["namespaces"] is None else ", ".join(told["namespaces"]) or "no namespace"
    return "\n".join(
        [
            f"valid until {told['expires_at']}",
            f"subject      {told['subject']}",
            f"permissions  {', '.join(told['permissions']) or 'none'}",
            f"in           {where}",
            f"issuer       {told['issuer']}, for {told['audience']}",
        ]
    )

"""Commands that make keys and tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from tasker.cli.auth.options import NAMESPACES, PEM, PERMISSIONS, auth_settings, require_permissions, text_of
from tasker.cli.connection import FORMAT, print_as
from tasker.errors import UsageError
from tasker.settings.toml_text import toml_value

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
    from tasker.services.authentication.rsa_keys import generate

    private, public = output_dir / PRIVATE, output_dir / PUBLIC
    if found := [str(file) for file in (private, public) if file.exists()]:
        raise UsageError(
            f"{' and '.join(found)} already exists", hint="choose another folder, or move the existing files"
        )
    secret, shown = generate(key_size)
    output_dir.mkdir(parents=True, exist_ok=True)
    _write([(private, secret, PRIVATE_MODE), (public, shown, PUBLIC_MODE)])
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
    from tasker.services.authentication.rsa_keys import private_key as key_in
    from tasker.services.authentication.tokens import TokenOrder, sign

    if private_key is None and not settings.private_key:
        raise UsageError("no private key to sign with", hint="give --private-key FILE")
    pem, where = (text_of(private_key), str(private_key)) if private_key else (settings.private_key, "jwt_private_key")
    order = TokenOrder(subject, permissions, expiry_hours or settings.token_hours, namespaces, key_id)
    token = sign(order, key_in(pem, where), settings)
    print_as(form, {"token": token, "expires_in_hours": order.hours}, lambda made: str(made["token"]))


@click.command("create-api-key")
@click.option("--name", required=True, metavar="NAME", help="Owner of the key; recorded in the audit log.")
@PERMISSIONS
@NAMESPACES
@FORMAT
def create_api_key(name: str, permissions: tuple[str, ...], namespaces: tuple[str, ...], form: str) -> None:
    """Create an API key, and the configuration entry that holds its digest. The key is shown only once."""
    require_permissions(permissions)
    from tasker.services.authentication.api_keys import digest, new_key

    key = new_key()
    entry = {"key": digest(key), "name": name, "permissions": [*permissions]}
    if namespaces:
        entry["namespaces"] = [*namespaces]
    print_as(form, {"api_key": key, "configuration": entry}, _key_text)


def _key_text(made: Mapping[str, Any]) -> str:
    lines = [f"{name} = {toml_value(value)}" for name, value in made["configuration"].items()]
    return "\n".join([made["api_key"], "", "[[orchestration.web.auth.api_keys]]", *lines])

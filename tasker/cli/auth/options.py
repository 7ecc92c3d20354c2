"""Options shared by the commands about keys and tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import configured_for
from tasker.cli.options import DatabaseOption
from tasker.cli.server import require_libraries
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.services.authentication.settings import AuthSettings

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


def auth_settings() -> AuthSettings:
    """Return the configured settings. Raises `UsageError` if the extra `api` is not installed."""
    require_libraries("working with keys and tokens", ("cryptography", "jwt"))
    return configured_for(DatabaseOption()).http.auth


def require_permissions(permissions: tuple[str, ...]) -> None:
    """Raise `UsageError` for unknown permissions."""
    from tasker.contracts.rules.permissions import grants_of

    _, unknown = grants_of(permissions)
    if unknown:
        raise UsageError(
            f"no such permission: {', '.join(unknown)}", hint="run `tasker auth show-permissions` for the list"
        )


def text_of(file: Path) -> str:
    """Return the text of a file. Raises `UsageError` if it cannot be read."""
    from tasker.services.authentication.authenticator import read

    return read(str(file), str(file))

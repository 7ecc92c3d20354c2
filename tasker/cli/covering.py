"""Redaction of values that a schema marks as `x-sensitive`; a server redacts by the caller's permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet

SHOW_SENSITIVE = click.option(
    "--show-sensitive", is_flag=True, help="Show values that a schema marks as x-sensitive; redacted by default."
)


def seen(app: Fleet, show_sensitive: bool) -> Fleet:
    """Return the services without sensitive values, unless they are to be shown."""
    from tasker.services.viewer import STRANGER, SeenServices

    return app if show_sensitive else cast("Fleet", SeenServices(app, STRANGER))

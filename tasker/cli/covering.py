"""Redaction of values that a schema marks as `x-sensitive`; a server redacts by the caller's permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet

T = TypeVar("T")

SHOW_SENSITIVE = click.option(
    "--show-sensitive", is_flag=True, help="Show values that a schema marks as x-sensitive; redacted by default."
)


async def redacted(app: Fleet, task: str, answer: T, show_sensitive: bool) -> T:
    """Return data about a task, with its sensitive values redacted unless they are to be shown."""
    veil = None if show_sensitive else await app.sensitive_values.veil(task, ())
    if veil is None:
        return answer
    redacted: T = veil.redact(answer)
    return redacted

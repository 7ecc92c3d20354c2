"""Options shared by methods of `App`, `SyncApp` and related functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from tasker.services.submitting.submission import OnDuplicate, SubmissionOptions


class PlanOptions(TypedDict, total=False):
    """Selection of a target's workflow: its name if a file has several, and the environment of the overrides."""

    template: str | None
    environment: str | None


class SubmitOptions(PlanOptions, SubmissionOptions, total=False):
    """Options of a submission in a caller's transaction, in addition to target and context."""


class RunOptions(SubmitOptions, total=False):
    """Options of `App.run`, in addition to target, context and `timeout`."""

    on_duplicate: OnDuplicate


def listed(handlers: Sequence[str | Path] | str | Path) -> Sequence[str | Path]:
    """Return the sources of handlers as a list; a single source may be given alone."""
    return [handlers] if isinstance(handlers, (str, Path)) else list(handlers)

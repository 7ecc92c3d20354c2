"""Options that several methods of `App`, `SyncApp` and the functions beside them take alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from tasker.services.submitting.submission import OnDuplicate, SubmissionOptions


class PlanOptions(TypedDict, total=False):
    """Which workflow of a target is meant: its name where a file has several, and the environment's overrides."""

    template: str | None
    environment: str | None


class SubmitOptions(PlanOptions, SubmissionOptions, total=False):
    """All that a submission in a caller's transaction may say beside target and context."""


class RunOptions(SubmitOptions, total=False):
    """All that `App.run` may be told beside target, context and `timeout`."""

    on_duplicate: OnDuplicate


def listed(handlers: Sequence[str | Path] | str | Path) -> Sequence[str | Path]:
    """The sources of handlers, of which one may be given alone."""
    return [handlers] if isinstance(handlers, (str, Path)) else list(handlers)

"""Options that several methods of `App`, `SyncApp` and the functions beside them take alike."""

from __future__ import annotations

from typing import TypedDict

from tasker.services.submitting.submission import OnDuplicate, RequestOptions


class PlanOptions(TypedDict, total=False):
    """Which workflow of a target is meant: its name where a file has several, and the environment's overrides."""

    template: str | None
    environment: str | None


class SubmitOptions(PlanOptions, RequestOptions, total=False):
    """All that a submission in a caller's transaction may say beside target and context."""


class RunOptions(SubmitOptions, total=False):
    """All that `App.run` may be told beside target, context and `timeout`."""

    on_duplicate: OnDuplicate

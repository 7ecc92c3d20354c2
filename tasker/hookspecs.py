"""The hooks of a process: what plugins hear of, and may add (see `docs/writing-plugins.md`).

A plugin is a module or an object in the entry-point group `tasker.plugins`; its functions are marked with `hookimpl`
and named like those of `Hooks`. They are plain functions, called on the event loop of the process, so they must be
quick. What one raises is logged once, counted, and changes nothing. Arguments are frozen; answers are ignored but for
`tasker_commands`. What a hook tells is what this process did: the rows of the database stay the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pluggy

from tasker.contracts.hook_arguments import (
    AttemptEnded,
    AttemptStarted,
    BreakerChanged,
    ClaimsHeld,
    ProcessInfo,
    Repaired,
    TaskFinished,
)

if TYPE_CHECKING:
    import click

__all__ = [
    "AttemptEnded",
    "AttemptStarted",
    "BreakerChanged",
    "ClaimsHeld",
    "Hooks",
    "ProcessInfo",
    "Repaired",
    "TaskFinished",
    "hookimpl",
]

PROJECT = "tasker"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as one that Tasker calls."""


class Hooks:
    """What Tasker calls, by name. A function of a plugin may leave arguments out."""

    @hookspec
    def tasker_attempt_started(self, attempt: AttemptStarted) -> None:
        """A claimed step is about to run here. One `tasker_attempt_ended` follows, unless the process ends before."""

    @hookspec
    def tasker_attempt_ended(self, ended: AttemptEnded) -> None:
        """An attempt is over in this process; what came of it is stored next."""

    @hookspec
    def tasker_task_finished(self, task: TaskFinished) -> None:
        """A write of this process ended a task. Not called where the answer of the database was lost."""

    @hookspec
    def tasker_breaker_changed(self, breaker: BreakerChanged) -> None:
        """A circuit breaker of this process has changed its state."""

    @hookspec
    def tasker_claims_held(self, claims: ClaimsHeld) -> None:
        """This process stops claiming (or claims less), or goes on, for one reason; there may be several at a time."""

    @hookspec
    def tasker_repaired(self, repaired: Repaired) -> None:
        """A sweep of this process repaired something."""

    @hookspec
    def tasker_process_started(self, process: ProcessInfo) -> None:
        """A worker or an orchestrator has begun to work in this process."""

    @hookspec
    def tasker_process_stopping(self, process: ProcessInfo) -> None:
        """It was told to stop: it claims nothing more, and what runs gets its grace."""

    @hookspec
    def tasker_commands(self) -> Sequence[click.Command]:  # type: ignore[empty-body]  # the plugin's answer counts
        """Commands of `tasker` beside those that there are; those keep their names."""

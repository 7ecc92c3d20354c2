"""Words of `effect`: what a second execution of a step would do outside Tasker.

The compiler, the worker and the documentation read this table.
"""

from __future__ import annotations

from typing import Final

from tasker.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effect:
    """Meaning of one word."""

    does: str
    """Short description for the documentation."""
    may_repeat: bool = True
    """False: an attempt with an unknown outcome is never repeated by Tasker."""
    runs_early: bool = False
    """True: a worker may run the step before the results above it are stored."""


PURE, IDEMPOTENT, ONCE, TRANSACTIONAL = "pure", "idempotent", "once", "transactional"

EFFECTS: Final[dict[str, Effect]] = {
    PURE: Effect("only computes its result: it may run at any time and any number of times", runs_early=True),
    IDEMPOTENT: Effect("a second execution has no further effect"),
    ONCE: Effect("a second execution would do harm, so an unknown outcome is left to an operator", may_repeat=False),
    TRANSACTIONAL: Effect("writes to Tasker's database, in the transaction that completes the step"),
}
"""Effects by name."""

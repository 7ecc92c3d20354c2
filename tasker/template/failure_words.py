"""Words of `on_failure`: what a step that fails for good means for its task.

The planner, the compiler's rules and the documentation read this table. SQL stores the letter in
`workflow_steps.settled`.
"""

from __future__ import annotations

from typing import Final

from tasker.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FailureWord:
    """Meaning of one word."""

    does: str
    """Short description for the documentation."""
    letter: str | None = None
    """Letter stored with the failed step; None: the failure is not settled, and the task ends in `error`."""
    dependents_run: bool = False
    """True: the steps that depend on it run without its result; False: they are skipped or never start."""
    is_missing: bool = True
    """True: a task with such a failure ends with the outcome `partial`."""


FAIL_TASK, CONTINUE, OPTIONAL, SKIP_CASCADE, RUN = "fail_task", "continue", "optional", "skip_cascade", "run"
COMPENSATE = "compensate"

WORDS: Final[dict[str, FailureWord]] = {
    FAIL_TASK: FailureWord("the steps below never start, and the task ends in `error`"),
    CONTINUE: FailureWord("the steps below run without its result", "c", dependents_run=True),
    OPTIONAL: FailureWord(
        "as `continue`, and the task counts as complete without it", "o", dependents_run=True, is_missing=False
    ),
    SKIP_CASCADE: FailureWord("the steps below are skipped, and the rest of the task goes on", "k"),
    RUN: FailureWord("the steps below are skipped, and another step runs in their place", "h"),
    COMPENSATE: FailureWord("as `fail_task`, and the effects of the complete steps are undone in reverse order"),
}
"""Words by name. `optional` is written as `optional: true`, `run` as `on_failure: {run: STEP}`."""

SKIPPED = "s"
"""Letter of a step that is cancelled because a step above it failed."""

DEAD = frozenset({SKIPPED, *(word.letter for word in WORDS.values() if word.letter and not word.dependents_run)})
"""Letters of steps whose dependents do not run."""

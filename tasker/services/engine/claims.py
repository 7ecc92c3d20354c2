"""Answers of the engine about claims: one row for each claim, and the inputs for the handlers of the claimed steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.tracing import TraceContext

Answer = Mapping[str, Any]


class ClaimRow(NamedTuple):
    """Step that the caller may run now: `template` is the id of its plan, `ordinal` its position in the plan."""

    step: str
    task: str
    name: str
    template: int
    ordinal: int
    token: int
    attempt: int
    inputs: Mapping[str, Any] | None = None
    checkpoint: Mapping[str, Any] | None = None
    apart: bool = False
    """True if two workers were lost while running the step: it is isolated in a child process, if the worker can."""
    later: bool = False
    """True if its own inputs and checkpoint did not fit into the answer and must be read separately."""

    @classmethod
    def parse(cls, row: Answer) -> ClaimRow:
        """Parse a row of `claims`."""
        return cls(
            row["step"],
            row["task"],
            row["name"],
            row["template"],
            row["ordinal"],
            row["token"],
            row["attempt"],
            row.get("inputs"),
            row.get("checkpoint"),
            bool(row.get("apart")),
            bool(row.get("later")),
        )


@dataclass(slots=True)
class TaskInputs:
    """Task as the handlers of its steps see it.

    `results` maps a step name to (ordinal of the template step, result), and grows while the object is cached.
    """

    context: Mapping[str, Any]
    correlation_id: str
    trace: TraceContext | None = None
    results: dict[str, tuple[int, Any]] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    """Steps whose created steps are known."""
    created: dict[int, list[str]] = field(default_factory=dict)
    """Names of the steps created by `decided`, by the ordinal of the template step."""
    uses: int = 0
    """Number of steps started with this object."""

    @classmethod
    def parse(cls, row: Answer, results: dict[str, tuple[int, Any]]) -> TaskInputs:
        """Parse the parts of an answer that describe one task."""
        trace = row.get("trace")
        trace = TraceContext(**trace) if trace else None
        return cls(row["context"], row["correlation"], trace, results)


Inputs: TypeAlias = Mapping[str, TaskInputs]
"""Handler inputs, by task."""


class TooLarge(NamedTuple):
    """Size of a step's inputs that the database cannot return, with the task's correlation id and trace."""

    bytes: int
    results: int
    largest: Sequence[tuple[str, int]]
    """Names of ancestors and the sizes of their results."""
    correlation_id: str
    trace: TraceContext | None = None

    @classmethod
    def parse(cls, row: Answer) -> TooLarge:
        """Parse a row of `too_large`."""
        trace = TraceContext(**row["trace"]) if row.get("trace") else None
        largest = [(name, size) for name, size in row["largest"]]
        return cls(row["bytes"], row["results"], largest, row["correlation"], trace)


def too_large_of(answer: Answer) -> dict[str, TooLarge]:
    """Return the steps whose inputs did not fit into an answer."""
    return {step: TooLarge.parse(row) for step, row in (answer.get("too_large") or {}).items()}


def inputs_of(answer: Answer) -> Inputs:
    """Parse the inputs from the answer of `tasker.inputs_v1`, or of a claim, which has the same keys."""
    results = answer.get("results") or {}
    return {task: TaskInputs.parse(row, results.get(task) or {}) for task, row in (answer.get("tasks") or {}).items()}

"""What the engine answers about claims: one row for each, and what the handlers of the claimed steps read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.tracing import TraceContext

Answer = Mapping[str, Any]


class ClaimRow(NamedTuple):
    """A step that the caller may run now: `template` is its plan's identifier, `ordinal` its place in the plan."""

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
    """It has lost its worker twice: it runs in a child process, where it can."""
    later: bool = False
    """Its own inputs and checkpoint did not fit into the answer: they are to be read."""

    @classmethod
    def parse(cls, row: Answer) -> ClaimRow:
        """A row of `claims`."""
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
    """A task as the handlers of its steps see it. `results` holds (ordinal of the template step, result) by step name,
    and grows where it is kept."""

    context: Mapping[str, Any]
    correlation_id: str
    trace: TraceContext | None = None
    results: dict[str, tuple[int, Any]] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    """The steps of which it is known what they have created."""
    created: dict[int, list[str]] = field(default_factory=dict)
    """What these have created: names by the ordinal of the template step."""
    uses: int = 0
    """How many steps have been begun with it."""

    @classmethod
    def parse(cls, row: Answer, results: dict[str, tuple[int, Any]]) -> TaskInputs:
        """From the parts of an answer that speak of it."""
        trace = row.get("trace")
        trace = TraceContext(**trace) if trace else None
        return cls(row["context"], row["correlation"], trace, results)


Inputs: TypeAlias = Mapping[str, TaskInputs]
"""What handlers read, by task."""


class TooLarge(NamedTuple):
    """The size of a step's inputs that the database cannot answer, and whose they are."""

    bytes: int
    results: int
    largest: Sequence[tuple[str, int]]
    """Names of ancestors and the sizes of their results."""
    correlation_id: str
    trace: TraceContext | None = None

    @classmethod
    def parse(cls, row: Answer) -> TooLarge:
        """A row of `too_large`."""
        trace = TraceContext(**row["trace"]) if row.get("trace") else None
        largest = [(name, size) for name, size in row["largest"]]
        return cls(row["bytes"], row["results"], largest, row["correlation"], trace)


def too_large_of(answer: Answer) -> dict[str, TooLarge]:
    """The steps whose inputs an answer could not hold."""
    return {step: TooLarge.parse(row) for step, row in (answer.get("too_large") or {}).items()}


def inputs_of(answer: Answer) -> Inputs:
    """From the answer of `tasker.inputs_v1`, or of a claim, which holds the same."""
    results = answer.get("results") or {}
    return {task: TaskInputs.parse(row, results.get(task) or {}) for task, row in (answer.get("tasks") or {}).items()}

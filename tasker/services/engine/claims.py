"""What the engine answers about claims: one row for each, and what the handlers of the claimed steps read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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
        )

    @property
    def key(self) -> str:
        """The step of the template, as callers name those that they do not serve."""
        return f"{self.template}:{self.ordinal}"


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as the handlers of its steps see it."""

    context: Mapping[str, Any]
    correlation_id: str
    priority: int
    trace: TraceContext | None = None

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> TaskRow:
        """From its part of an answer."""
        trace = row.get("trace")
        return cls(row["context"], row["correlation"], row["priority"], TraceContext(**trace) if trace else None)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What handlers read, by task: its row, and the results (ordinal of the template step, result) by step name."""

    tasks: Mapping[str, TaskRow]
    results: Mapping[str, Mapping[str, tuple[int, Any]]]

    @classmethod
    def parse(cls, answer: Answer) -> Inputs:
        """From the answer of `tasker.inputs_v1`, or of a claim, which holds the same."""
        tasks = answer.get("tasks") or {}
        return cls(
            {task: TaskRow.parse(row) for task, row in tasks.items()},
            answer.get("results") or {},
        )

"""What becomes of a step, as the engine takes it: the one form between a result and its row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Required, TypeAlias, TypedDict

from tasker.contracts.execution import Verdict
from tasker.contracts.json_text import JsonText

NewSteps: TypeAlias = Sequence[Mapping[str, Any]]
"""Steps to create: name, ordinal, parents, inputs."""


class ExpansionRecord(NamedTuple):
    """What a step has added to its task: the version that the graph had before, and the new steps, if any."""

    version: int
    steps: NewSteps


class StepChange(TypedDict, total=False):
    """One item of `tasker.advance_v1` and `tasker.park_v1`: goes into the JSON of the call as it is."""

    s: Required[str]
    """The step."""
    t: Required[str]
    """Its task."""
    kind: Required[str]
    """What becomes of it, as `tasker.lifecycle.machines.moves.CHANGES` has it."""
    k: int
    """The token of the claim that this comes from."""
    w: str | None
    """Whose claim that is."""
    ms: int
    """How long the attempt took."""
    r: JsonText | Mapping[str, Any]
    """The result."""
    m: Mapping[str, Any]
    """What came with the result."""
    e: JsonText | Mapping[str, Any]
    """Why it failed."""
    d: int | None
    """Milliseconds until a retry, or until what was given back is offered again."""
    n: Mapping[str, Any]
    """What the history says of it."""
    ev: Mapping[str, Any] | None
    """The events that go with it, by the numbers of their declarations; None: the database has them."""
    gv: int
    """The version of the task's graph that `x` is valid for."""
    x: NewSteps
    """The steps that it creates."""


def completed(changes: Iterable[StepChange], verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """The steps that these changes completed, with the token of the result that they have now: a complete step never
    changes again (rule 2). Of two claims of one step the newer counts."""
    newest: dict[str, StepChange] = {}
    for change in changes:
        if newest.setdefault(change["s"], change).get("k", 0) < change.get("k", 0):
            newest[change["s"]] = change
    return {step: each["k"] for step, each in newest.items() if each["kind"] == "ok" and step not in verdicts}


def grown(changes: Iterable[StepChange], verdicts: Mapping[str, Verdict]) -> dict[str, ExpansionRecord]:
    """What the steps that decided with these changes have added to their tasks, by step."""
    return {
        change["s"]: ExpansionRecord(change["gv"], change.get("x", ()))
        for change in changes
        if "gv" in change and change["s"] not in verdicts
    }


def soonest_retry(changes: Iterable[StepChange]) -> int | None:
    """The shortest delay in milliseconds of the retries that these changes arrange; None: they arrange none."""
    return soonest(change["d"] for change in changes if change["kind"] == "retry")


def soonest(delays: Iterable[int | None]) -> int | None:
    """The shortest of the delays that there are."""
    return min((delay for delay in delays if delay is not None), default=None)

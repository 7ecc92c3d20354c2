"""Changes of steps as the engine takes them: the only form between a result and its row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Required, TypeAlias, TypedDict

from tasker.handlers.claims import Verdict
from tasker.json_values import JsonText

NewSteps: TypeAlias = Sequence[Mapping[str, Any]]
"""Steps to create: name, ordinal, parents, inputs."""


class ExpansionRecord(NamedTuple):
    """Expansion of a task's graph by one step: the version of the graph before it, and the new steps, if any."""

    version: int
    steps: NewSteps


class StepChange(TypedDict, total=False):
    """One item of `tasker.advance_v1` and `tasker.park_v1`, passed unchanged in the JSON of the call."""

    s: Required[str]
    """Step id."""
    t: Required[str]
    """Id of the step's task."""
    kind: Required[str]
    """Kind of the change, as in `tasker.engine.states.step_changes.CHANGES`."""
    k: int
    """Token of the claim that the change comes from."""
    w: str | None
    """Worker that has the claim."""
    ms: int
    """Duration of the attempt in milliseconds."""
    r: JsonText | Mapping[str, Any]
    """Result of the step."""
    m: Mapping[str, Any]
    """Metadata of the result."""
    e: JsonText | Mapping[str, Any]
    """Error of the attempt."""
    d: int | None
    """Milliseconds until a retry, or until a released step is offered again."""
    sn: int
    """How often the handler of a snoozed step may ask to be called again."""
    n: Mapping[str, Any]
    """Note for the task's history."""
    ev: Mapping[str, Any] | None
    """Events published with the change, by the numbers of their declarations; None if the database has them."""
    st: str
    """Letter of a failure after which the task goes on, or of a skipped step (`tasker.template.failure_words`)."""
    gv: int
    """Version of the task's graph for which `x` is valid."""
    x: NewSteps
    """Steps that the change creates."""


def completed(changes: Iterable[StepChange], verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """Return the steps that these changes completed, with the token of their final result.

    A complete step never changes again (rule 2). Of two claims of one step the newer counts.
    """
    newest: dict[str, StepChange] = {}
    for change in changes:
        if newest.setdefault(change["s"], change).get("k", 0) < change.get("k", 0):
            newest[change["s"]] = change
    return {
        step: final_change.get("k", 1)  # a step that ran ahead had no claim before
        for step, final_change in newest.items()
        if final_change["kind"] in ("ok", "ahead") and step not in verdicts
    }


def grown(changes: Iterable[StepChange], verdicts: Mapping[str, Verdict]) -> dict[str, ExpansionRecord]:
    """Return the expansions made by the steps that decided with these changes, by step."""
    return {
        change["s"]: ExpansionRecord(change["gv"], change.get("x", ()))
        for change in changes
        if "gv" in change and change["s"] not in verdicts
    }


def soonest_retry(changes: Iterable[StepChange]) -> int | None:
    """Return the shortest retry delay of these changes in milliseconds, or None if there is no retry."""
    return soonest(change["d"] for change in changes if change["kind"] == "retry")


def soonest(delays: Iterable[int | None]) -> int | None:
    return min((delay for delay in delays if delay is not None), default=None)

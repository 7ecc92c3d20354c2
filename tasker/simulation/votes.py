"""Outcomes of simulated approvals: mocked votes in their order, until they decide or the step times out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from tasker.errors import UsageError
from tasker.handlers.claims import Failure
from tasker.simulation.mocks import Mock, MockedVote
from tasker.simulation.run import SimulatedTask
from tasker.simulation.steps import AttemptOutcome, SimulatedStep
from tasker.template.plan import StepPlan
from tasker.template.schema_check import check_result

WRITE: Final = (
    "write `--mock STEP=approved:ann`, `{approved: true, by: ann}` in a file, "
    "or `mock.decided(True, by='ann')` in Python"
)
"""How a mock says what a person decides, at each place of mocks."""


def decided(task: SimulatedTask, step: SimulatedStep, wait: Mapping[str, Any], mock: Any) -> AttemptOutcome | None:
    """Return how an approval ends; None: never. Raises `UsageError` without a mock that says who decides."""
    if not isinstance(mock, Mock) or any(call.vote is None for call in mock.calls):
        raise UsageError(
            f"the step {step.name!r} waits for a person, and no mock says what they decide",
            hint=WRITE,
        )
    limit = None if wait["for_seconds"] is None else round(wait["for_seconds"] * 1000)
    votes: list[dict[str, Any]] = []
    at = 0
    for call in mock.calls:
        assert call.vote is not None
        at += call.takes_ms
        if limit is not None and at >= limit:
            break
        _require_another(step, votes, call.vote)
        votes.append(_vote(call.vote, (task.at + timedelta(milliseconds=task.now + at)).isoformat()))
        if (approved := _approved(votes, wait)) is not None:
            return _ended(approved, votes, wait, at)
    if limit is None:
        return None
    return AttemptOutcome(Failure("not decided in time", "wait_timed_out", False), limit)


def _require_another(step: SimulatedStep, votes: list[dict[str, Any]], vote: MockedVote) -> None:
    if any(each["by"] == vote.by for each in votes):
        hint = "a person votes once: give each vote of a quorum another `by`"
        raise UsageError(f"the mock of {step.name!r} has two votes of {vote.by!r}", hint=hint)


def _vote(vote: MockedVote, at: str) -> dict[str, Any]:
    decision = "approved" if vote.approved else "rejected"
    form = dict(vote.form)
    return {"by": vote.by, "decision": decision, "form": form, "comment": vote.comment, "via": "program", "at": at}


def _approved(votes: list[dict[str, Any]], wait: Mapping[str, Any]) -> bool | None:
    approvals = sum(vote["decision"] == "approved" for vote in votes)
    if approvals >= wait["quorum"]:
        return True
    return False if len(votes) - approvals >= (wait["quorum"] if wait["reject"] == "quorum" else 1) else None


def _ended(approved: bool, votes: list[dict[str, Any]], wait: Mapping[str, Any], at: int) -> AttemptOutcome:
    last = votes[-1]
    if not approved and wait["on_reject"] == "fail":
        comment = f": {last['comment']}" if last["comment"] else ""
        return AttemptOutcome(Failure(f"rejected by {last['by']}{comment}", "rejected", False), at)
    shown = {name: last[name] for name in ("by", "form", "comment")}
    return AttemptOutcome({"approved": approved, **shown, "votes": votes}, at)


def problems_of_vote(step: StepPlan, vote: MockedVote | None) -> list[str]:
    """Return why a mock is no vote about the step."""
    if vote is None:
        return [f"the step {step.name!r} waits for a person, and its mock says nothing about their decision: {WRITE}"]
    if step.wait is None or step.wait.get("on") != "person":
        return [f"the mock of {step.name!r} is the vote of a person, and the step does not wait for one"]
    form = step.wait["form"] or {"type": "object", "additionalProperties": False}
    if not vote.approved:
        form = {key: value for key, value in form.items() if key != "required"}
    return [f"the vote mocked for {step.name!r} does not fit its form: {m}" for m in check_result(form, vote.form)]

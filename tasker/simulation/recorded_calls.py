"""Calls of the handlers of a task that ran, as the mocks of a scenario file describe them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, NamedTuple

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.handlers.builtin import HANDLERS as PURE
from tasker.handlers.outcome_forms import DECISION_KEY
from tasker.simulation.calls import attempt_limit
from tasker.simulation.mocks import decision
from tasker.simulation.samples import sample
from tasker.template.generated_steps import RESULTS
from tasker.template.plan import Plan, RetryPolicy, StepPlan
from tasker.template.step_types import Creates
from tasker.views.task_lists import TransitionDetail
from tasker.views.tasks import StepReport, TaskReport

Mocked = dict[str, Any]
"""One call as a scenario file has it: `{result: ...}`, `{fails: ...}` and so on."""
LONGEST_MESSAGE = 300
"""Characters of a failure's message in a scenario."""
DEADLINE = "deadline_exceeded"
"""Error type of the steps that were open at the deadline of their task."""


class Ending(NamedTuple):
    """End of one call of a step's handler."""

    kind: str
    """`ok`, `failure` or `again`."""
    at: datetime
    began: datetime | None
    """None: the step ended without a call."""
    takes_ms: int
    failure: Mapping[str, Any] | None = None
    again_ms: int = 0


@dataclass(slots=True)
class RecordedStep:
    """Step of a task that ran, with the ends of the calls of its handler since an operator last reset it."""

    report: StepReport
    plan: StepPlan
    endings: list[Ending] = field(default_factory=list)
    by_operator: str | None = None
    """What an operator did to the step, which no simulated run does."""

    @property
    def is_mocked(self) -> bool:
        """True if a scenario says what its handler returned, false if a simulated run evaluates the step itself."""
        if self.by_operator is not None or self.report.reused_from is not None:
            return True
        if self.plan.wait is not None:
            return self.plan.is_ended_by_others
        return has_effects(self.plan) or len(self.endings) > 1

    @property
    def has_run(self) -> bool:
        """True if its handler was called, or its result came from elsewhere."""
        return bool(self.endings) or self.report.state in ("complete", "resolved_manually")

    @property
    def ended(self) -> bool:
        """True if the step is in a final state."""
        return self.report.state in ("complete", "error", "resolved_manually", "cancelled")


def has_effects(step: StepPlan) -> bool:
    """Return whether a simulated run needs a mock of the step: it calls a handler that may have effects."""
    return step.has_handler and step.handler.callable not in PURE


def template_step(plan: Plan, name: str) -> StepPlan:
    """Return the step of the template of which `name` is the step itself or an instance."""
    return plan.by_name.get(name) or plan.by_name[name.rpartition("_")[0]]


def recorded_steps(plan: Plan, report: TaskReport, history: Iterable[TransitionDetail]) -> dict[str, RecordedStep]:
    """Return the steps of a task with the ends of their calls, by name."""
    steps = {name: RecordedStep(step, template_step(plan, name)) for name, step in report.steps.items()}
    rows: dict[str, list[TransitionDetail]] = {name: [] for name in steps}
    for row in history:
        if row.step in rows:
            rows[row.step].append(row)
    for name, step in steps.items():
        _follow(step, rows[name])
    return steps


def _follow(step: RecordedStep, rows: Sequence[TransitionDetail]) -> None:
    failures = iter(step.report.failures)
    began: datetime | None = None
    for row in rows:
        before, after = row.from_state, row.to_state
        takes = row.execution_time_ms or 0
        if after == "in_progress":
            began = row.at
        elif after == "waiting_for_retry" and before == "in_progress":
            if "wait" in (row.metadata or {}) and began is not None:  # its handler waited for an event
                waited_ms = round((row.at - began).total_seconds() * 1000)
                step.endings.append(Ending("again", row.at, began, 0, None, waited_ms))
            elif not _is_deferral(row):
                step.endings.append(Ending("again", row.at, began, takes, None, _waited_ms(row)))
            began = None
        elif after in ("waiting_for_retry", "error"):
            step.endings.append(Ending("failure", row.at, began, takes, next(failures, None)))
            began = None
        elif after in ("complete", "resolved_manually"):
            if began is None or after != "complete":
                step.by_operator = "completed" if after == "complete" else "resolved"
                step.endings.clear()
            step.endings.append(Ending("ok", row.at, began, takes))
            began = None
        elif before == "error" and after == "pending":
            step.endings.clear()
            step.by_operator = "reset"
    if step.report.reused_from is not None:
        step.by_operator, step.endings = None, step.endings[-1:]


def _is_deferral(row: TransitionDetail) -> bool:
    """Return whether an open circuit breaker put the step off: its handler was not called."""
    return "again" not in (row.metadata or {})


def _waited_ms(row: TransitionDetail) -> int:
    """Return the delay with which a handler asked to be called again."""
    until = datetime.fromisoformat((row.metadata or {})["waited_until"])
    return max(0, round((until - row.at).total_seconds() * 1000))


def mocks_of(plan: Plan, steps: Mapping[str, RecordedStep], results: Mapping[str, Any], is_open: bool) -> Mocked:
    """Return the mocks of a scenario by step. `results` are those of the steps, as they are to be written.

    Instances of a batch_worker have one mock, except those that differ. Of an open task the steps without an end are
    mocked with values that fit their schemas.
    """
    called = {name: step for name, step in steps.items() if step.is_mocked and (is_open or step.has_run)}
    made = {name: _calls(plan, step, results.get(name), is_open) for name, step in called.items()}
    mocks: Mocked = {}
    for step in plan.steps:
        names = [name for name in made if steps[name].plan is step]
        lists = {name: _shortest(made[name]) for name in names}
        if step.type.is_pattern and lists:
            mocks |= _of_instances(step.name, lists)
        elif lists:
            mocks |= lists
        elif is_open and (has_effects(step) or step.is_ended_by_others):
            mocks[step.name] = sample_mock(step)
    return mocks


def _of_instances(pattern: str, mocks: Mapping[str, Any]) -> Mocked:
    """Return the mocks of a batch_worker's instances: one under its own name for those that do the same."""
    does = {name: repr(_without_times(mock)) for name, mock in mocks.items()}
    usual, count = Counter(does.values()).most_common(1)[0]
    if count == 1:
        return dict(mocks)
    first = next(name for name in mocks if does[name] == usual)
    return {pattern: mocks[first], **{name: mock for name, mock in mocks.items() if does[name] != usual}}


def _without_times(mock: Any) -> list[Mocked]:
    calls = mock if isinstance(mock, list) else [mock]
    return [{key: value for key, value in call.items() if key != "takes"} for call in calls]


def _shortest(calls: list[Mocked]) -> Any:
    """Return calls as a scenario has them: equal failures in a row are one, and a single call is no list."""
    short: list[Mocked] = []
    for call in calls:
        if short and "fails" in call and {**call, "times": 0} == {**short[-1], "times": 0}:
            short[-1]["times"] = short[-1].get("times", 1) + 1
        else:
            short.append(dict(call))
    return short[0] if len(short) == 1 else short


def _calls(plan: Plan, step: RecordedStep, result: Any, is_open: bool) -> list[Mocked]:
    if step.plan.type.starts_children:
        return _children(step, result)
    if step.plan.wait is not None:
        return _votes(step, result) if step.plan.wait.get("on") == "person" else _events(step, result)
    calls = [call for ending in step.endings for call in _call(plan, step, ending, result)]
    if is_open and not step.ended:
        calls.append(sample_mock(step.plan))
    return calls or [{"result": {} if result is None else result}]


def _call(plan: Plan, step: RecordedStep, ending: Ending, result: Any) -> Iterator[Mocked]:
    takes = {"takes": ending.takes_ms / 1000} if ending.takes_ms > 0 else {}
    if takes and ending.takes_ms > (limit := attempt_limit(step.plan)) * 1000:
        takes = {"takes": limit}
    if ending.kind == "again":
        yield {"again_in": ending.again_ms / 1000, **takes}
    elif ending.kind == "ok":
        yield {**_result(step.plan, {} if result is None else result), **takes}
    elif ending.failure is not None and ending.failure.get("error_type") == DEADLINE:
        if ending.began is not None:  # it ran until the deadline of its task
            left = (ending.at - ending.began).total_seconds() + 1
            yield {"result": {}, "takes": min(attempt_limit(step.plan), left)}
    elif ending.failure is not None and ending.began is not None:
        yield {**_failure(step.plan, ending.failure), **takes}


def _failure(step: StepPlan, error: Mapping[str, Any]) -> Mocked:
    kind = str(error.get("error_type") or "error")
    if kind == "worker_lost":
        return {"lost": 1}
    call: Mocked = {"fails": kind}
    if not error.get("retryable"):
        call["retryable"] = False
    if message := error.get("message"):
        call["message"] = str(message)[:LONGEST_MESSAGE]
    if code := error.get("error_code"):
        call["code"] = str(code)
    if (after := error.get("retry_after")) is not None or (after := _metadata(error).get("retry_after")) is not None:
        call["retry_after"] = after
    if error.get("retryable") and (raises := _named_by(step.retry, kind, code, _metadata(error))):
        call["raises"] = raises
    return call


def _metadata(error: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = error.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _named_by(policy: RetryPolicy, kind: str, code: Any, metadata: Mapping[str, Any]) -> str | None:
    """Return the name by which `only_on` allowed a further attempt, if it is not the type or the code of the error."""
    if not policy.only_on or {kind, code} & set(policy.only_on):
        return None
    raised = metadata.get("exception_type")
    return raised if raised in policy.only_on else policy.only_on[0].replace("xx", "00")


def _result(step: StepPlan, result: Any) -> Mocked:
    if step.for_each is not None and step.type.is_pattern and isinstance(result, Mapping):
        return _items(step, result.get(RESULTS, ()))
    outcome = result.get(DECISION_KEY) if isinstance(result, Mapping) else None
    if step.type.creates is Creates.BRANCHES and isinstance(outcome, Mapping):
        names = outcome.get("step_names", ())
        if result == decision(names):
            return {"route": list(names)}
    return {"result": result}


def _items(step: StepPlan, results: Sequence[Any]) -> Mocked:
    assert step.for_each is not None
    if not results:
        return {"result": {}}
    if step.for_each.on_error != "collect":
        return {"items": [{"result": result} for result in results]}
    return {"items": [_collected(item) for item in results]}


def _collected(item: Mapping[str, Any]) -> Mocked:
    if item.get("ok"):
        return {"result": item.get("result")}
    error = item.get("error") or {}
    return {"fails": str(error.get("type")), "retryable": False, "message": str(error.get("message"))}


def _events(step: RecordedStep, result: Any) -> list[Mocked]:
    """Return the events that a wait took, each with the time after the one before; none: `no_event`."""
    events = [] if not isinstance(result, Mapping) else result.get("events", [result] if "event" in result else [])
    last = step.endings[-1].began if step.endings else None
    mocks: list[Mocked] = []
    for event in events:
        sent = datetime.fromisoformat(event["sent_at"])
        after = 0.0 if last is None else max(0.0, round((sent - last).total_seconds(), 3))
        mocks.append({"event": event["payload"], **({"after": after} if after else {})})
        last = sent if last is None else max(last, sent)
    return mocks or [{"no_event": True}]


def _children(step: RecordedStep, result: Any) -> list[Mocked]:
    """Return the result of a step's child tasks, or how it failed; its children are recorded on their own."""
    last = step.endings[-1] if step.endings else None
    if last is not None and last.kind == "failure" and last.failure is not None:
        return [{**_failure(step.plan, last.failure), "retryable": False}]
    return [{"result": result}] if result is not None else [{"result": {"results": []}}]


def _votes(step: RecordedStep, result: Any) -> list[Mocked]:
    """Return the votes about an approval, each with the time after the one before; none: `no_decision`."""
    wait, error = step.plan.wait or {}, step.report.error or {}
    if not isinstance(result, Mapping) or "votes" not in result:
        if error.get("type") != "rejected":
            return [{"no_decision": True}]
        needed = wait["quorum"] if wait.get("reject") == "quorum" else 1
        return [{"approved": False, "by": f"person {number + 1}"} for number in range(needed)]
    last = step.endings[-1].began if step.endings else None
    mocks: list[Mocked] = []
    for vote in result["votes"]:
        at = datetime.fromisoformat(vote["at"])
        after = 0.0 if last is None else max(0.0, round((at - last).total_seconds(), 3))
        given = {key: vote[key] for key in ("by", "form", "comment") if vote.get(key)}
        mocks.append({"approved": vote["decision"] == "approved", **given, **({"after": after} if after else {})})
        last = at
    return mocks


def sample_mock(step: StepPlan) -> Mocked:
    """Return a mock of a step that has not ended: a value that fits its schema. Raises `UsageError` if none fits."""
    if step.type.starts_children:
        return {"result": {"results": []}}
    if step.wait is not None:
        return {"no_decision": True} if step.wait.get("on") == "person" else {"no_event": True}
    if step.type.creates is Creates.BRANCHES:
        return {"route": []}
    if step.type.creates is Creates.BATCHES:
        return {"batches": 0}
    schema = step.for_each.result_schema if step.for_each is not None else step.result_schema
    try:
        return {"result": sample(schema)}
    except ValueError as error:
        message = f"{step.name} has not ended, and no small value fits its result_schema: {error}"
        raise UsageError(message, hint="record the task once it has ended") from None

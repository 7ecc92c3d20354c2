"""Outcomes of simulated attempts: by a mock, by expressions, by a built-in step, or by the real handler."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from time import monotonic
from typing import Any, TypeVar

from tasker.engine.retry import with_unknown_outcome
from tasker.engine.states.step import StepState
from tasker.errors import ResolutionError, UsageError
from tasker.execution.attempt.attempt import Attempt, AttemptCancelFlag, Checkpoint, Ending, Snooze
from tasker.execution.attempt.call import call_blocking
from tasker.execution.attempt.evaluated import ItemCalls, evaluate
from tasker.execution.attempt.settle import make_storable, role_mismatch, settle_return_value, timed_out
from tasker.handlers.builtin import HANDLERS as PURE
from tasker.handlers.claims import AGAIN_KEY, Claim, Failure, Success, Suspension
from tasker.handlers.registry.invocation import HandlerKind, HandlerSource, ResolvedHandler, entry_point, to_handler
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.handlers.results import StepHandlerResult
from tasker.handlers.step_inputs import mapped_inputs
from tasker.json_values import as_stored
from tasker.settings.queues import HandlerDispatch
from tasker.simulation.children import CHILD, child_plan, children_outcome
from tasker.simulation.gates import gates_of
from tasker.simulation.mock_checks import Strictness, check_mocks
from tasker.simulation.mocked_events import TASK, mocked_event, waiting_of
from tasker.simulation.mocks import Mock, MockedCall, Mocks, mock_of
from tasker.simulation.published import SimulatedEvent, events_of
from tasker.simulation.run import SimulatedTask
from tasker.simulation.steps import Again, AttemptOutcome, SimulatedStep
from tasker.simulation.votes import decided
from tasker.template.effects import ONCE
from tasker.template.plan import Plan, StepPlan

CORRELATION = "00000000-0000-7000-8000-000000000002"
T = TypeVar("T")
Called = Success | Failure | Snooze | Suspension


class StepCalls:
    """Calls of the handlers of one simulated task.

    A mock comes first, then what needs no handler: expressions, and built-in steps without effects. Any other step
    needs a handler of `registry`; without one the run is refused, because nobody has said what the step returns.
    """

    def __init__(
        self,
        plan: Plan,
        values: Mapping[str, Any],
        mocks: Mocks,
        registry: HandlerRegistry | None = None,
        resources: Mapping[str, Any] | None = None,
        strictness: Strictness = "strict",
        templates: Sequence[Plan] = (),
    ) -> None:
        self._plan, self._values, self._registry = plan, values, registry
        self._templates, self._strictness, self._given = templates, strictness, resources
        self._mocks_of_children = {name: mock for name, mock in mocks.items() if "/" in name}
        mocks = {name: mock for name, mock in mocks.items() if "/" not in name}
        self._resources: Any = (
            resources if resources is None or hasattr(resources, "renew") else FakeResources(resources)
        )
        self._mocks = {name: mock if callable(mock) else mock_of(mock) for name, mock in mocks.items()}
        self.inputs: dict[str, Any] = {}
        """Evaluated `inputs` of the last attempt of each step that has some."""
        self.events: list[SimulatedEvent] = []
        """Events that the attempts published."""
        check_mocks(plan, self._mocks, strictness)

    def __call__(self, task: SimulatedTask, step: SimulatedStep) -> AttemptOutcome | None:
        """Return the outcome of the step's next attempt; None for a wait that never ends."""
        if step.plan.type.starts_children:
            return self._children(task, step)
        if (wait := step.plan.wait) is not None:
            mock = self._mocks.get(step.name)
            return self._events(task, step, wait) if "events" in wait else decided(task, step, wait, mock)
        attempt = self._attempt(task, step)
        mock = self._mocks.get(step.name, self._mocks.get(step.plan.name))
        takes, events = 0, None
        if isinstance(mock, Mock) and mock.is_event:  # for its handler, which is called
            mock, events = None, mock
        if isinstance(mock, Mock):
            call = mock.call(step.calls)
            takes = call.takes_ms
            if (limit := attempt_limit(step.plan)) * 1000 < takes:
                failure = _of_effect(step.plan, timed_out(limit, step.plan.handler.callable))
                return AttemptOutcome(failure, round(limit * 1000))
            if call.lost:
                return AttemptOutcome(_lost(step.plan), takes)
            if call.again_ms is not None:
                return AttemptOutcome(Again(call.again_ms), takes)
        ending = self._ending(attempt, step, mock)
        if isinstance(ending, Suspension):
            return AttemptOutcome(waiting_of(task, step, ending, events), takes)
        if not isinstance(ending, Snooze):
            self.events += events_of(attempt, ending)
        return AttemptOutcome(outcome_of(ending), takes)

    def _children(self, task: SimulatedTask, step: SimulatedStep) -> AttemptOutcome:
        """Return what the mock of a step with child tasks says, or what its simulated children come to."""
        mock = self._mocks.get(step.name)
        if isinstance(mock, Mock):
            call = mock.call(step.calls)
            one = {} if (step.plan.wait or {})["for_each"] else {"task_uuid": CHILD.format(1)}
            outcome = call.failure if call.failure is not None else one | dict(call.result or {})
            return AttemptOutcome(outcome, call.takes_ms)
        child = child_plan(self._plan, step, self._templates)
        ids = {"task_uuid": TASK, "correlation_id": CORRELATION}
        return children_outcome(task, step, child, ids, self._run_child)

    def _run_child(self, plan: Plan, values: Mapping[str, Any]) -> SimulatedTask:
        prefix = f"{plan.name}/"
        mocks = {
            name.removeprefix(prefix) if name.startswith(prefix) else name: mock
            for name, mock in self._mocks_of_children.items()
            if name.startswith(prefix) or any(step.type.starts_children for step in plan.steps)
        }
        calls = StepCalls(plan, values, mocks, self._registry, self._given, self._strictness, self._templates)
        task = SimulatedTask(plan, values, calls, at=datetime.now(UTC), gates=gates_of(plan, values))
        task.run()
        return task

    def _events(self, task: SimulatedTask, step: SimulatedStep, wait: Mapping[str, Any]) -> AttemptOutcome | None:
        """Return how a wait for events ends: with the mocked ones that come in time, or by its timeout."""
        mock = self._mocks.get(step.name)
        if not isinstance(mock, Mock):
            raise UsageError(
                f"the step {step.name!r} waits for an event, and no mock says whether it comes",
                hint="mock it: `mock.event(PAYLOAD, after='2h')`, `mock.no_event()`, or `{event: PAYLOAD}` in a file",
            )
        limit = None if wait["for_seconds"] is None else round(wait["for_seconds"] * 1000)
        taken, at = [], 0
        for call in mock.calls if wait["take"] == "all" else mock.calls[: wait["count"]]:
            at += call.takes_ms
            if limit is None or at < limit:
                taken.append(mocked_event(task, wait, call.event, at))
        if wait["take"] == "all":
            return None if limit is None else AttemptOutcome({"events": taken}, limit)
        if len(taken) == wait["count"]:
            return AttemptOutcome(taken[0] if wait["count"] == 1 else {"events": taken}, at)
        if limit is None:
            return None
        return AttemptOutcome(Failure(f"no event {wait['events'][0]['event']} came", "wait_timed_out", False), limit)

    def _ending(self, attempt: Attempt, step: SimulatedStep, mock: Any) -> Called:
        if not step.plan.has_handler and mock is None:
            return evaluate(attempt)
        handler = self._handler(step, mock)
        if isinstance(handler, Failure):
            return handler
        if step.plan.for_each is not None:
            return self._for_items(attempt, step, handler)
        if step.plan.inputs is not None:
            read = attempt.claim, attempt.task_context, attempt.dependency_results
            inputs = mapped_inputs(self._plan, step.plan, *read)
            if isinstance(inputs, Failure):
                return make_storable(replace(inputs, handler=step.plan.handler.callable))
            self.inputs[step.name] = inputs
            attempt = replace(attempt, inputs=inputs)
        return self._called(attempt, handler)

    def _for_items(self, attempt: Attempt, step: SimulatedStep, handler: Handler) -> Called:
        async def call(item: Attempt) -> Ending:
            inputs = self.inputs.setdefault(step.name, [])
            inputs.append(item.inputs)
            return self._called(item, handler.of_item(len(inputs) - 1) if isinstance(handler, MockedCall) else handler)

        async def save(saved: Attempt, position: Checkpoint) -> Attempt:
            return _moved_to(saved, position)

        self.inputs[step.name] = []
        assert step.plan.for_each is not None
        calls = ItemCalls(attempt, step.plan.for_each, step.plan.handler.callable, call, save, lambda failure: failure)
        ending = _finished(calls.run())
        assert isinstance(ending, Called)
        return ending

    def _called(self, attempt: Attempt, handler: Handler) -> Called:
        """Call the handler over as many checkpoints as it yields."""
        while True:
            if isinstance(handler, MockedCall):
                return self._mocked(attempt, handler)
            ending = call_blocking(attempt, handler)
            if not isinstance(ending, Checkpoint):
                return ending
            attempt = _moved_to(attempt, ending)

    def _mocked(self, attempt: Attempt, call: MockedCall) -> Success | Failure:
        name = attempt.step.handler.callable
        if call.failure is not None:
            return make_storable(replace(call.failure, handler=name))
        result = StepHandlerResult.success(call.result_for(self._plan, attempt.step))
        return settle_return_value(result, attempt.step, name)

    def _handler(self, step: SimulatedStep, mock: Any) -> Handler | Failure:
        if isinstance(mock, Mock):
            return mock.call(step.calls)
        if mock is not None:
            call = entry_point(to_handler(mock, step.plan.name), "call")
            kind: HandlerKind = "async" if inspect.iscoroutinefunction(call) else "sync"
            return ResolvedHandler(kind, call, f"mock of {step.plan.name}", HandlerSource("", "", "call"))
        name = step.plan.handler.callable
        if self._registry is None and name not in PURE:
            raise UsageError(
                f"the step {step.name!r} of {self._plan.namespace}/{self._plan.name} has no mock: its handler "
                f"{name!r} may have effects, and is not called",
                hint=f"mock it (`--mock {step.plan.name}=RESULT`), or run the real handlers (`--handlers real`)",
            )
        try:
            handler = (self._registry or _builtin()).of_step(step.plan, self._plan.id)
        except ResolutionError as error:
            raise UsageError(f"the step {step.name!r} has no handler: {error}", hint=error.hint) from None
        if problem := handler.problem(step.plan):
            return role_mismatch(handler.name, *problem)
        return handler

    def _attempt(self, task: SimulatedTask, step: SimulatedStep) -> Attempt:
        left = task.left_ms
        claim = Claim(
            step_uuid=f"00000000-0000-7000-8000-{step.number:06}{step.plan.ordinal:06}",
            task_uuid=TASK,
            name=step.name,
            template=0,
            ordinal=step.plan.ordinal,
            namespace=self._plan.namespace,
            token=step.number,
            attempt=step.attempts,
            max_attempts=max(1, step.plan.retry.max_attempts),
            correlation_id=CORRELATION,
            inputs=step.batch,
            checkpoint={AGAIN_KEY: dict(step.again)} if step.again else None,
            failures=_failures_above(task, step),
            outcome=task.phases.at_rest(),
            ends_at=None if left is None else monotonic() + left / 1000,
        )
        return Attempt(
            claim=claim,
            plan=self._plan,
            step=step.plan,
            task_context=self._values,
            dependency_results=task.results_above(step),
            cancel=AttemptCancelFlag(),
            writes=_NoWrites(),
            resources=self._resources,
        )


Handler = ResolvedHandler | MockedCall


class FakeResources(dict[str, Any]):
    """Fakes that the handlers of a simulated run get as resources."""

    def are_made(self, names: frozenset[str]) -> bool:
        """Return True: a fake exists from the start."""
        return True

    def renew(self) -> list[str]:
        """Return the names of those whose secrets have changed: none."""
        return []


class _NoWrites:
    """Writes of an attempt that has no rows."""

    async def begin(self, attempt: Attempt) -> bool:
        return True

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any]:
        return {}

    async def lock(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    memo = lock

    async def children(self, attempt: Attempt, page: Mapping[str, Any]) -> Mapping[str, Any]:
        hint = f"mock {attempt.step.name!r}"
        raise UsageError("a simulated run has no child tasks for `context.children`", hint=hint)


def _failures_above(task: SimulatedTask, step: SimulatedStep) -> dict[str, dict[str, Any]] | None:
    """Return the failures of the steps above without which the task went on, as a handler asks for them."""
    if step.plan.is_late:  # it reads every failure
        forward = (other for other in task.steps.values() if not other.plan.is_late)
        return {other.name: _error_of(other) for other in forward if other.settled or other.state is StepState.ERROR}
    names = task.plan.above.of(step.plan.name)
    gone = [other for name in names for other in task.instances(name) if other.settled is not None]
    return {other.name: _error_of(other) for other in gone} or None


def _error_of(step: SimulatedStep) -> dict[str, Any]:
    if not step.failures:
        return {"error_type": "skipped", "message": "a step above it failed"}
    failure = step.failures[-1].failure
    return {
        "error_type": failure.error_type,
        "message": failure.message,
        "error_code": failure.error_code,
        "attempt": step.attempts,
    }


def attempt_limit(step: StepPlan) -> float:
    """Return the timeout of an attempt in seconds."""
    return HandlerDispatch.handler_timeout_ms / 1000 if step.timeout_seconds is None else step.timeout_seconds


def outcome_of(ending: Called) -> Any:
    """Return how a simulated attempt ended: its result as stored, a `Failure`, or `Again`."""
    if isinstance(ending, Success):
        return as_stored(ending.encoded)
    return Again(ending.delay_ms, ending.limit, ending.state) if isinstance(ending, Snooze) else ending


def _lost(step: StepPlan) -> Failure:
    retryable = step.on_worker_lost != "fail"
    return _of_effect(step, Failure("the worker was lost", "worker_lost", retryable, handler=step.handler.callable))


def _of_effect(step: StepPlan, failure: Failure) -> Failure:
    """Return the failure of an attempt that ended while its handler ran."""
    return with_unknown_outcome(failure, {}) if step.effect == ONCE else failure


def _moved_to(attempt: Attempt, position: Checkpoint) -> Attempt:
    """Return the attempt as it goes on behind a position that its handler yielded."""
    saved = {
        "cursor": position.cursor,
        "items_processed": position.items_processed,
        "accumulated_results": position.accumulated_results,
    }
    kept = {name: value for name, value in (attempt.claim.checkpoint or {}).items() if name == AGAIN_KEY}
    return replace(attempt, claim=replace(attempt.claim, checkpoint=saved | kept))


def _finished(calls: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits for nothing."""
    try:
        calls.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits for something")


@cache
def _builtin() -> HandlerRegistry:
    return HandlerRegistry()

"""Contexts for tests of handlers, built as a worker builds them, and recordings of the events that handlers publish."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.handlers.claims import AGAIN_KEY, Claim, HandlerEvent, publishing
from tasker.handlers.context import StepContext
from tasker.handlers.locks import UnsharedLocks
from tasker.handlers.starting import StartedTask, TaskStarter
from tasker.handlers.step_inputs import scope_of
from tasker.template.plan import HandlerRef, Plan, StepPlan
from tasker.template.step_types import DEFAULT

if TYPE_CHECKING:
    import httpx

    from tasker.resources.http import HttpResource

TASK, STEP, CORRELATION = (f"0190b0c0-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))


def step_context(
    values: Mapping[str, Any] | None = None,
    *,
    results: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    batch: tuple[Any, Any] | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    attempt: int = 1,
    name: str = "step",
    resources: Mapping[str, Any] | None = None,
    failures: Mapping[str, str] | None = None,
    handles: str | None = None,
    state: Mapping[str, Any] | None = None,
    event: Any = None,
    timed_out: bool = False,
    transaction: Any = None,
    starter: TaskStarter | None = None,
    children: Mapping[str, Sequence[Any]] | None = None,
) -> StepContext:
    """Return the context for a handler call.

    Args:
        values: Input of the task.
        results: Results of dependencies, by step name.
        config: `initialization` of the handler.
        batch: Start and end (exclusive) of a batch; makes the step a batch worker.
        checkpoint: Checkpoint of an earlier run (`cursor`, `items_processed`, `accumulated_results`).
        attempt: Number of the attempt, from 1.
        name: Name of the step.
        resources: What `context.resource` and `@uses` give the handler, by name.
        failures: Error types that `context.failed` finds, by the step that failed or was skipped.
        handles: Step whose failure creates this one, for `context.failure`.
        state: What `context.state` returns, as an earlier call stored it.
        event: Payload of the event with which the handler goes on (`context.event`).
        timed_out: No event came in time (`context.timed_out`).
        transaction: Connection or session of a transactional handler, which the test commits or rolls back.
        starter: Receiver of the tasks that `context.submit` starts; `RecordedStarts` records them.
        children: Outputs that `context.children` finds, by the step that started the child tasks.
    """
    handler = HandlerRef(name, initialization=dict(config or {}))
    step = StepPlan(name, DEFAULT, handler, ordinal=0, level=0, depends_on=(), static=True, handles=handles)
    claim = Claim(
        step_uuid=STEP,
        task_uuid=TASK,
        name=name,
        template=0,
        ordinal=0,
        namespace="tests",
        token=1,
        attempt=attempt,
        max_attempts=3,
        correlation_id=CORRELATION,
        inputs=None if batch is None else _batch_inputs(*batch),
        checkpoint=_checkpoint(checkpoint, state, event, timed_out),
        failures=None if failures is None else {name: {"error_type": kind} for name, kind in failures.items()},
    )
    context = StepContext.build(
        claim=claim,
        plan=Plan("tests", "test", "1.0.0", (step,)),
        step=step,
        task_context=values or {},
        dependency_results=results or {},
        resources=resources,
        starter=starter,
        calls=None if children is None else partial(_Calls, children),
    )
    if transaction is not None:
        context.enter(transaction)
    return context


class _Calls(UnsharedLocks):
    """Calls to no worker: locks are free, and outputs of succeeded children come in one page."""

    def __init__(self, children: Mapping[str, Sequence[Any]]) -> None:
        super().__init__()
        self._children = children

    def call(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        if action != "children_page":
            return super().call(action, fields)
        outputs = enumerate(self._children.get(fields["step"], ()))
        rows = [
            {"index": index, "task_uuid": TASK, "state": "succeeded", "output": output, "error": None}
            for index, output in outputs
        ]
        return {"children": rows, "total": len(rows), "more": False}


def _checkpoint(
    checkpoint: Mapping[str, Any] | None, state: Mapping[str, Any] | None, payload: Any, timed_out: bool
) -> dict[str, Any] | None:
    again: dict[str, Any] = {} if state is None else {"state": state}
    if payload is not None:
        sent_at = "2026-01-01T00:00:00+00:00"
        again["event"] = {"event": "event", "key": "", "payload": payload, "event_uuid": TASK, "sent_at": sent_at}
    if timed_out:
        again["timed_out"] = True
    return {**(checkpoint or {}), **({AGAIN_KEY: again} if again else {})} or None


class RecordedStarts:
    """Recording of the tasks that a handler starts by `context.submit`, for `step_context(starter=...)`."""

    def __init__(self) -> None:
        self.started: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        """Target, input and options of each call."""

    def bind(self, loop: object) -> None:
        """Do nothing: nothing runs elsewhere."""

    def start(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Record a task and return an identifier for it; an equal one, or one of the same key, is not created again."""
        given = {name: value for name, value in options.items() if value is not None}
        known = [json.dumps([was, key.get("key") or content]) for was, content, key in self.started]
        same = json.dumps([target, given.get("key") or dict(values or {})])
        number = known.index(same) if same in known else len(known)
        self.started.append((target, dict(values or {}), given))
        return StartedTask(f"0190b0c0-0000-7000-8000-{number + 16:06x}000000", created=same not in known)

    async def start_async(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Record a task as `start` does."""
        return self.start(claim, target, values, options)


def step_inputs(
    plan: Plan,
    step: str,
    values: Mapping[str, Any] | None = None,
    *,
    results: Mapping[str, Any] | None = None,
    attempt: int = 1,
    item: Any = None,
    index: int = 0,
) -> dict[str, Any]:
    """Return the evaluated `inputs` of a step.

    Args:
        plan: The compiled template.
        step: Name of a step that has `inputs`.
        values: Input of the task.
        results: Results of the steps above, by name; of a batch_worker by the names of its instances (`work_001`).
        attempt: Number of the attempt, from 1.
        item: Item of the list, of a step with `for_each`.
        index: Position of the item, from 0.

    Raises:
        MappingFailure: An expression has no value; the message says where and why.
    """
    scope = scope_of(plan, TASK, CORRELATION, attempt, values or {}, results or {})
    if (each := plan.by_name[step].for_each) is not None:
        scope |= {each.name: item, "index": index}
    return plan.input_mappings[step].evaluate(scope)


def step_decision(
    plan: Plan, step: str, values: Mapping[str, Any] | None = None, *, results: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the result of a step that has expressions in place of a handler.

    Args:
        plan: The compiled template.
        step: Name of a step with `rules`; `NAME.when` or `NAME.each` for a step with `when` or `for_each`.
        values: Input of the task.
        results: Results of the steps above, by name; of a step with `for_each` by the names of its instances.

    Raises:
        MappingFailure: An expression has no value; the message says where and why.
    """
    from tasker.handlers.evaluated_steps import evaluated_result  # needed for steps with expressions only

    return evaluated_result(plan.by_name[step], scope_of(plan, TASK, CORRELATION, 1, values or {}, results or {}))


def fake_http(answer: Callable[[httpx.Request], httpx.Response]) -> HttpResource:
    """Return a resource of the kind `http` whose requests `answer` answers, for `tasker.http` and for handlers."""
    import httpx

    from tasker.resources.http import HttpResource

    return HttpResource("http://fake.example", transport=httpx.MockTransport(answer), limit=60)


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """Event that a handler published itself.

    `withheld` is the reason why it would not be published; then it has no payload.
    """

    name: str
    payload: Mapping[str, Any] | None
    condition: str
    delivery_mode: str
    withheld: str | None


@contextmanager
def published_events() -> Iterator[list[RecordedEvent]]:
    """Collect the events that handlers publish in this block, in order; the list is filled when the block ends."""
    from tasker.execution.handler_events import EventBuffer

    buffer, events = EventBuffer(), list[RecordedEvent]()
    token = publishing.set(buffer)
    try:
        yield events
    finally:
        publishing.reset(token)
        events += map(_published, buffer.taken())


def _published(event: HandlerEvent) -> RecordedEvent:
    payload = json.loads(event.payload.text) if event.payload else None
    return RecordedEvent(event.name, payload, event.condition, event.delivery_mode, event.withheld)


def _batch_inputs(start: Any, end: Any) -> dict[str, Any]:
    size = end - start if isinstance(start, int) and isinstance(end, int) else 1
    cursor = {"batch_id": "001", "start_cursor": start, "end_cursor": end, "batch_size": size}
    return {"cursor": cursor, "batch_metadata": {}, "is_no_op": False}

"""`StepContext`: the input, results of the steps above, settings and state of the attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, Self
from uuid import UUID

from pydantic import Field, PrivateAttr, SerializerFunctionWrapHandler, model_serializer

from tasker.handlers.again import GoingOn
from tasker.handlers.claims import AGAIN_KEY, Claim, HandlerEvents, StepFailure, TaskOutcome
from tasker.handlers.copies import CopyOnRead, deep_copy
from tasker.handlers.dependency_results import dig, names_with_prefix, unwrap
from tasker.handlers.lending import Lending
from tasker.handlers.readable import yes_or_no
from tasker.handlers.reporting import ProgressReporting
from tasker.handlers.results import Model
from tasker.handlers.resuming import Resuming
from tasker.handlers.starting import StartingTasks, TaskStarter
from tasker.template.names import MAX_ATTEMPTS
from tasker.template.plan import Plan, StepPlan

if TYPE_CHECKING:
    from tasker.handlers.calls import HandlerCalls


_KEPT = {"input_data": "_inputs", "dependency_results": "_results"}
"""Fields that are copied when they are first read, and the attributes that hold the originals until then."""
_MADE_WHEN_READ = ("task_uuid", "step_uuid", "correlation_id", *_KEPT)


_OF_THIS_PROCESS = ("_cancel_flag", "_events", "_inputs", "_results", "_resources", "_locks", "_transaction")


class CancelFlag(Protocol):
    """Flag that the worker sets to ask a handler to stop; `threading.Event` is one."""

    def is_set(self) -> bool:
        """Return True once the handler should stop."""
        ...


class StepContext(ProgressReporting, StartingTasks, Resuming, GoingOn, Lending, Model):
    """Everything a handler may read. No accessor raises for a missing value.

    `input_data` is the input of the handler: the step's evaluated `inputs`, or the task's context for a step without
    them. `task_input` is the task's context in any case, `step_inputs` the inputs of this step instance (a batch
    worker's cursor), `step_config` the template's `initialization`. `retry_count` is 0 on the first run; `max_retries`
    is the maximum number of executions.
    """

    task_uuid: UUID
    step_uuid: UUID
    correlation_id: UUID
    handler_name: str
    input_data: dict[str, Any] = Field(default_factory=dict)
    dependency_results: dict[str, Any] = Field(default_factory=dict)
    step_config: dict[str, Any] = Field(default_factory=dict)
    step_inputs: dict[str, Any] = Field(default_factory=dict)
    retry_count: int = 0
    max_retries: int = MAX_ATTEMPTS

    _claim: Claim | None = PrivateAttr(None)
    _template: tuple[str, str, str] | None = PrivateAttr(None)
    _step: StepPlan | None = PrivateAttr(None)  # for forms of the context that other packages make
    _cancel_flag: CancelFlag | None = PrivateAttr(None)
    _events: HandlerEvents | None = PrivateAttr(None)
    _inputs: CopyOnRead | None = PrivateAttr(None)
    _results: CopyOnRead | None = PrivateAttr(None)
    _resources: Mapping[str, Any] | None = PrivateAttr(None)
    _calls: Callable[[], HandlerCalls] | None = PrivateAttr(None)
    _transaction: Any = PrivateAttr(None)
    _starter: TaskStarter | None = PrivateAttr(None)
    _task_input: Mapping[str, Any] | None = PrivateAttr(None)
    """The task's context where `input_data` is not; None where it is."""

    @classmethod
    def build(
        cls,
        *,
        claim: Claim,
        plan: Plan,
        step: StepPlan,
        task_context: Mapping[str, Any],
        dependency_results: Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
        cancel_flag: CancelFlag | None = None,
        events: HandlerEvents | None = None,
        resources: Mapping[str, Any] | None = None,
        calls: Callable[[], HandlerCalls] | None = None,
        starter: TaskStarter | None = None,
    ) -> StepContext:
        """Return the context of a claimed step, without validation because the worker's values are valid.

        `dependency_results` are unwrapped values by step name, `inputs` the evaluated inputs of the step. The ids are
        created when they are first read, which most handlers do not do; the task's context and each result are likewise
        copied only when read.
        """
        self = cls.__new__(cls)
        setting = object.__setattr__
        setting(
            self,
            "__dict__",
            {
                "handler_name": step.handler.callable,
                "step_config": deep_copy(dict(step.handler.initialization)),
                "step_inputs": deep_copy(dict(claim.inputs)) if claim.inputs else {},
                "retry_count": claim.attempt - 1,
                "max_retries": claim.max_attempts,
            },
        )
        setting(self, "__pydantic_fields_set__", _field_names(cls).copy())
        setting(self, "__pydantic_extra__", None)
        setting(
            self,
            "__pydantic_private__",
            {
                "_claim": claim,
                "_template": (plan.namespace, plan.name, plan.version),
                "_step": step,
                "_cancel_flag": cancel_flag,
                "_events": events,
                "_inputs": CopyOnRead.of(task_context if inputs is None else inputs),
                "_results": CopyOnRead.of(dependency_results),
                "_resources": resources,
                "_calls": calls,
                "_transaction": None,
                "_starter": starter,
                "_task_input": None if inputs is None else CopyOnRead.of(task_context),
            },
        )
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "event":  # not a property of the class: contexts of tasker_core have a field of that name
                return self.awaited_event
            if name not in _MADE_WHEN_READ:
                return super().__getattr__(name)
            if name in _KEPT:
                value: Any = dict(getattr(self, _KEPT[name]))
            else:
                value = UUID(getattr(self._claim, name))
            return self.__dict__.setdefault(name, value)  # several threads may be the first to read it

    @model_serializer(mode="wrap")
    def _complete(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        for name in _MADE_WHEN_READ:
            getattr(self, name)
        plain: dict[str, Any] = serialize(self)
        return plain

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Return the fields that identify the attempt; its input, which may be large and secret, is omitted."""
        return [("handler", self.handler_name), ("task", str(self.task_uuid)), ("attempt", self.retry_count + 1)]

    def __eq__(self, other: object) -> bool:
        for context in (self, other):
            if isinstance(context, StepContext):
                context._copy_kept()
        return super().__eq__(other)

    def _copy_kept(self) -> None:
        for name in _KEPT:
            getattr(self, name)
        if self._task_input is not None:
            self._task_input = dict(self._task_input)

    def read_singly(self, name: str) -> Mapping[str, Any]:
        """Return `input_data` or `dependency_results` for access to single values: only the values read are copied."""
        copied: Mapping[str, Any] | None = self.__dict__.get(name)
        return getattr(self, _KEPT[name]) if copied is None else copied

    def __getstate__(self) -> dict[Any, Any]:
        """Return everything but what belongs to this process: cancel flag, events, resources, starter of tasks."""
        self._copy_kept()
        state = super().__getstate__()
        cleared = dict.fromkeys(
            ("_cancel_flag", "_events", "_inputs", "_results", "_resources", "_locks", "_transaction", "_starter")
        )
        private = dict(state["__pydantic_private__"] or {}, **cleared)
        if (claim := private["_claim"]) is not None:  # the object that knows the trace context cannot be pickled
            private["_claim"] = replace(claim, trace=claim.propagated_trace, trace_of=None)
        return {**state, "__pydantic_private__": private}

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Copy the context; the copy shares the attempt's cancel flag and published events."""
        self._copy_kept()
        other = self.__copy__()
        object.__setattr__(other, "__dict__", deepcopy(self.__dict__, memo))
        other._inputs = other._results = None
        return other

    @property
    def cancelled(self) -> bool:
        """True once the task was cancelled, the attempt timed out or the worker is stopping.

        A long loop should check it.
        """
        return self._cancel_flag is not None and self._cancel_flag.is_set()

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline of the task, 0 once it has passed; None without a deadline.

        The handler is stopped then. Pass it on as the timeout of a request, or as `deadline` of a task that it submits.
        """
        left = None if self._claim is None else self._claim.seconds_left(monotonic())
        return None if left is None else max(0.0, left)

    @property
    def trace_headers(self) -> dict[str, str]:
        """W3C headers `traceparent` and `tracestate` for a request of this step; {} without a trace.

        The HTTP methods of `APIMixin` add them automatically. They carry the trace context of the task's submission, or
        the one that a plugin provides: with `otel` that of this attempt, which always exists.
        """
        trace = None if self._claim is None else self._claim.propagated_trace
        return {} if trace is None else trace.headers()

    @property
    def fencing_token(self) -> int:
        """Number of this claim of the step, higher than those of all its earlier claims; 0 outside of a worker.

        Send it with a write to a system that refuses lower numbers than it has seen for the step: then a worker that
        was taken for dead cannot overwrite what its successor wrote.
        """
        return 0 if self._claim is None else self._claim.token

    @property
    def step_name(self) -> str:
        """Name of this step instance (`process_csv_batch_001` for a batch worker)."""
        return "" if self._claim is None else self._claim.name

    @property
    def namespace(self) -> str:
        """Namespace of the task's template."""
        return "" if self._template is None else self._template[0]

    def get_dependency_result(self, step_name: str) -> Any:
        """Return the unwrapped result of a dependency; None if it has none."""
        return unwrap(self.read_singly("dependency_results").get(step_name))

    def failed(self, step_name: str) -> StepFailure | None:
        """Return why a step above has no result although this one runs: it failed or was skipped. None: it did not.

        A step that is skipped has the error type `skipped`.
        """
        error = None if self._claim is None else (self._claim.failures or {}).get(step_name)
        return None if error is None else StepFailure.parse(step_name, error)

    @property
    def failure(self) -> StepFailure | None:
        """Failure that this step was created for (`on_failure: {run: ...}`); None for every other step."""
        owner = None if self._step is None else self._step.handles
        return None if owner is None else self.failed(owner)

    @property
    def outcome(self) -> TaskOutcome | None:
        """End of the other steps of the task, for a step of `finally` and a compensation; None for every other step."""
        claim = self._claim
        if claim is None or claim.outcome is None or self._step is None or not self._step.is_late:
            return None
        return TaskOutcome.parse(claim.outcome, claim.failures or {})

    def get_dependency_field(self, step_name: str, *path: str) -> Any:
        """Return a value inside the result of a dependency: `get_dependency_field("fetch", "user", "email")`."""
        return dig(self.get_dependency_result(step_name), path)

    def get_dependency_result_keys(self) -> list[str]:
        """Return the names of the dependencies that have a result."""
        return list(self.read_singly("dependency_results"))

    def get_all_dependency_results(self, prefix: str) -> list[Any]:
        """Return the results of all dependencies whose name starts with `prefix`, batches in their order."""
        return [
            self.get_dependency_result(name)
            for name in names_with_prefix(self.read_singly("dependency_results"), prefix)
        ]

    @property
    def task_input(self) -> Mapping[str, Any]:
        """Input of the task, also in a step whose `inputs` say what its handler reads."""
        return self.input_data if self._task_input is None else self._task_input

    @property
    def reads_task(self) -> bool:
        """True if the handler's input is that of the task."""
        return self._task_input is None

    def get_input(self, key: str) -> Any:
        """Return a field of the handler's input, or None: of the step's `inputs`, or of the task's context."""
        return self.read_singly("input_data").get(key)

    def get_task_field(self, name: str) -> Any:
        """Return a field of the task's context, or None."""
        return self.get_input(name) if self._task_input is None else self._task_input.get(name)

    def get_input_or(self, key: str, default: Any = None) -> Any:
        """Return a field of the handler's input, or `default` if it is missing or null."""
        value = self.get_input(key)
        return default if value is None else value

    def get_config(self, key: str) -> Any:
        """Return a value of the template's `initialization`, or None."""
        return self.step_config.get(key)

    @yes_or_no
    def is_retry(self) -> bool:
        """True from the second execution on."""
        return self.retry_count > 0

    @yes_or_no
    def is_last_retry(self) -> bool:
        """True if no execution follows this one."""
        return self.retry_count >= self.max_retries - 1

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """Data that the last `checkpoint_yield` of this step stored; None without one."""
        return None if self._claim is None else self._claim.checkpoint_data

    @property
    def stored_again(self) -> Mapping[str, Any]:
        """State and event of earlier calls of the handler, as stored; see `state` and `event`."""
        return ((self._claim and self._claim.checkpoint) or {}).get(AGAIN_KEY) or {}


@cache
def _field_names(context: type[StepContext]) -> set[str]:
    """Return the fields of a context class. The caller must copy the set."""
    return set(context.model_fields)

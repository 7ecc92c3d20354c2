"""The compiled template: a plan, its steps and their policies.

A plan is immutable and content-addressed. `Plan.to_json` is canonical (sorted keys, no white space), so equal content
has an equal `Plan.hash` on every machine. A task stores the hash and uses this plan to its end (pinned runs). A fleet's
defaults are part of a stored plan; `Plan.id` identifies what its author wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tasker.dataclasses import dataclass
from tasker.template.ancestry import Ancestry
from tasker.template.condition_plans import ForEach, Rule, steps_evaluated_below, steps_in_chains
from tasker.template.names import (
    BACKOFF_BASE_MS,
    BACKOFF_MULTIPLIER,
    BREAKER_FAILURES,
    BREAKER_SUCCESSES,
    BREAKER_TIMEOUT_SECONDS,
    MAX_ATTEMPTS,
    MAX_BACKOFF_MS,
)
from tasker.template.step_types import StepType

if TYPE_CHECKING:
    from tasker.expressions.mapping import InputMapping


class TemplateId(NamedTuple):
    """Identifier of a template. `hash` is its content hash, if known."""

    namespace: str
    name: str
    version: str
    hash: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.version}"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number and delays of a step's attempts. Times are milliseconds; `max_attempts` counts executions."""

    retryable: bool = True
    max_attempts: int = MAX_ATTEMPTS
    backoff: str = "exponential"
    backoff_base_ms: int = BACKOFF_BASE_MS
    max_backoff_ms: int = MAX_BACKOFF_MS
    multiplier: float = BACKOFF_MULTIPLIER
    increment_ms: int | None = None
    """Linear only: increment of each further delay. None means `backoff_base_ms`."""
    jitter: float | Literal["full"] = 0.0
    """Share of the delay that jitter adds or subtracts, 0.0 to 1.0; `full`: anything from zero to the delay."""
    max_elapsed_ms: int | None = None
    """Time from the start of the first attempt after which none begins; None: no limit."""
    never_on: tuple[str, ...] = ()
    """Errors after which the step does not run again (`tasker.template.error_rules`)."""
    only_on: tuple[str, ...] = ()
    """The only errors after which it runs again; empty: all."""
    profile: str | None = None
    delays_ms: tuple[int, ...] = ()
    """Delays after the first, second ... failure, in place of `backoff`; the last one repeats."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Thresholds and timeout of a circuit breaker."""

    failure_threshold: int = BREAKER_FAILURES
    """Consecutive failures that open it."""
    timeout_seconds: float = float(BREAKER_TIMEOUT_SECONDS)  # 30 and 30.0 would hash differently
    """Seconds that it refuses calls before it allows a trial; also the maximum wait for an unfinished trial."""
    success_threshold: int = BREAKER_SUCCESSES
    """Consecutive successes that close it when half-open."""


@dataclass(frozen=True, slots=True)
class StepBreaker(BreakerPolicy):
    """Circuit breaker around the handler of a step, in each worker."""

    name: str | None = None
    """Dependency of the handler: in a worker, steps with equal name and policy share a breaker. None: its own one."""


@dataclass(frozen=True, slots=True)
class HandlerRef:
    """Reference to the code of a step, resolved by the resolver chain or by the resolver that `resolver` names."""

    callable: str
    method: str = "call"
    resolver: str | None = None
    initialization: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Settings for batch workers, copied into the inputs of each instance."""

    batch_size: int | None = None
    parallelism: int | None = None
    cursor_field: str = "id"
    worker_template: str | None = None
    failure_strategy: str = "fail_fast"
    checkpoint_interval: int | None = None


@dataclass(frozen=True, slots=True)
class StepLimit:
    """Limit of what runs at the same time, or of how many attempts begin in a time.

    Steps whose limits have equal names and equal keys share the permits.
    """

    name: str
    """`step NAMESPACE/TEMPLATE/STEP`, `template NAMESPACE/TEMPLATE` or `namespace NAMESPACE`; of a rate with `rate `
    before it; of a limit of the configuration its name there."""
    key: Mapping[str, Any] | None = None
    """Place of the key's value, as that of `not_before`; None: one value for all."""
    max_running: int | None = None
    """Number of permits for each value of the key; None: it is a rate, or the configuration has the numbers."""
    rate: float | None = None
    """Attempts per second for each value of the key."""
    burst: float | None = None
    """Attempts that may begin at once after a pause."""
    on_limit: str = "wait"
    """Of a limit of tasks: `wait`, `cancel_new` or `cancel_running`."""

    @property
    def is_named(self) -> bool:
        """True for a limit whose numbers are in the configuration."""
        return self.max_running is None and self.rate is None


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step of the template, with everything that the engine and the worker need to run it."""

    name: str
    type: StepType
    handler: HandlerRef
    ordinal: int
    """Position in topological order (ties broken by the order in the file), from 0."""
    level: int
    """Longest distance from a root; steps of one level may run concurrently."""
    depends_on: tuple[str, ...]
    """Declared dependencies, in the order of the file."""
    static: bool
    """True: the step exists from the start of the task. False: an expansion creates it."""
    retry: RetryPolicy = RetryPolicy()
    inherits: tuple[str, ...] = ()
    """Fields of `retry` that the template does not set: a fleet's settings fill them at submission."""
    timeout_seconds: float | None = None
    """Timeout of one attempt; None means the worker's default."""
    delay_seconds: float | None = None
    """Time that the step waits once it is ready."""
    not_before: Mapping[str, Any] | None = None
    """Time before which the step does not start: `{time}`, or its place `{input: [...]}` or `{step, path: [...]}`."""
    limits: tuple[StepLimit, ...] = ()
    """Limits of what runs at the same time: the step waits for a permit of each."""
    requires: tuple[str, ...] = ()
    """Tags that a worker must have to run the step, sorted."""
    slots: int = 1
    """Slots of its worker that the step uses."""
    wait: Mapping[str, Any] | None = None
    """For what a step waits that no worker runs (`tasker.wait_ends_at` in SQL)."""
    execution: str | None = None
    """`async`, `thread` or `process`; None: chosen by the handler's kind."""
    memory_mb: int | None = None
    """Memory limit in MB of the child process of a step with `process`; None: no limit."""
    on_worker_lost: str = "retry"
    """`retry` or `fail`: reaction to a worker that died after the handler had started."""
    effect: str | None = None
    """What a second execution would do (`tasker.template.effects`); None: what the handler declares, or nothing."""
    memoize: Mapping[str, Any] | None = None
    """Stored results that stand for calls of the handler: `{key, ttl_seconds}`; None: each attempt calls it."""
    on_failure: str = "fail_task"
    """What happens to the task when the step fails for good (`tasker.template.failure_words`)."""
    run_on_failure: str | None = None
    """Step that is created when this one fails, with the word `run`."""
    handles: str | None = None
    """Step whose failure creates this one; None: it does not depend on a failure."""
    at_rest: bool = False
    """True for a step of `finally`: it is created when all others have come to rest (`tasker.begin_phase`)."""
    undoes: str | None = None
    """Step whose effect this one undoes; None: it is no compensation."""
    circuit_breaker: StepBreaker | None = None
    """Circuit breaker around the handler; None: no breaker."""
    result_schema: Mapping[str, Any] | None = None
    inputs: Mapping[str, Any] | None = None
    """Input of the handler, whose texts may contain `${...}`; None: the task's whole input."""
    rules: tuple[Rule, ...] = ()
    """Rules of a decision without a handler."""
    for_each: ForEach | None = None
    """List of a step with `for_each`, and of the generated step that cuts it into batches."""
    made_for: str | None = None
    """Step whose `when` or `for_each` the compiler turned into this step; None: the author wrote this step."""
    batch: BatchSettings | None = None
    lifecycle: Mapping[str, Any] = field(default_factory=dict)
    system_dependency: str | None = None
    publishes_events: tuple[Mapping[str, Any], ...] = ()
    description: str | None = None

    @property
    def is_ended_by_others(self) -> bool:
        """True for a step that waits for an event or a person."""
        return self.wait is not None and self.wait.get("on") != "time"

    @property
    def is_late(self) -> bool:
        """True for a step of `finally` and for a compensation: they are created when all others have come to rest."""
        return self.at_rest or self.undoes is not None

    @property
    def has_handler(self) -> bool:
        """False for a step that only evaluates expressions, which the worker does itself, or waits."""
        return self.wait is None and not self.rules and (self.for_each is None or self.type.is_pattern)

    @property
    def served_by(self) -> str:
        """Handler, tags and slots that a worker needs for the step, in words (`tasker.served_by` in SQL)."""
        tags = f" with the tag{'s'[: len(self.requires) - 1]} {', '.join(self.requires)}" if self.requires else ""
        slots = f" with {self.slots} slots" if self.slots > 1 else ""
        return f"{self.handler.callable}{tags}{slots}"


@dataclass(frozen=True)
class Plan:
    """Compiled template; its steps are in topological order: `steps[i].ordinal == i`."""

    namespace: str
    name: str
    version: str
    steps: tuple[StepPlan, ...]
    description: str | None = None
    input_schema: Mapping[str, Any] | None = None
    identity_strategy: str = "strict"
    lifecycle: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    system_dependencies: Mapping[str, Any] = field(default_factory=dict)
    domain_events: tuple[Mapping[str, Any], ...] = ()
    environment: str | None = None
    concurrency: StepLimit | None = None
    """Limit of the tasks that are open at the same time, from their first step on."""
    tenant: Mapping[str, Any] | None = None
    """Place of the tenant's name in the input; None: only a submission names it."""
    unique: Mapping[str, Any] | None = None
    """Place of the unique key in the input, as that of `StepLimit.key`; {}: one key for all tasks; None: none."""
    debounce: Mapping[str, Any] | None = None
    """Merging of submissions, as `{key, wait, max_wait, keep}` in seconds."""
    max_submits_per_minute: int | None = None
    """Number of tasks submitted in a minute, of all versions; None: unlimited."""
    expires_in_seconds: float | None = None
    """Time from its start after which a task is cancelled that no worker has begun; None: never."""
    schedules: tuple[Mapping[str, Any], ...] = ()
    """Schedules as `{name, spec}`, with a stored `ScheduleSpec`."""
    deadline_seconds: float | None = None
    """Time from its start after which the open steps of a task fail; None: never."""
    priority: int = 0
    """Priority of tasks that are submitted without one."""
    release: str = "by_age"
    """Start of the age of waiting steps: when they became ready, or with `finish_started_first` the submission."""
    fairness: Mapping[str, Any] | None = None
    """Turns of flows, as `{key: [name...], weights: {value: weight}, default}`; None: all tasks are one flow."""
    task_events: bool = False
    """Whether the end of a task is a durable event."""

    @cached_property
    def by_name(self) -> dict[str, StepPlan]:
        """Steps by name."""
        return {step.name: step for step in self.steps}

    @cached_property
    def dependents(self) -> dict[str, tuple[str, ...]]:
        """For each step the names of the steps that declare it as a dependency, in topological order."""
        dependents: dict[str, list[str]] = {step.name: [] for step in self.steps}
        for step in self.steps:
            for name in step.depends_on:
                dependents[name].append(step.name)
        return {name: tuple(children) for name, children in dependents.items()}

    @cached_property
    def starts_children(self) -> bool:
        """True if a step starts child tasks."""
        return any(step.type.starts_children for step in self.steps)

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Names of the steps without dependencies."""
        return tuple(step.name for step in self.steps if not step.depends_on)

    @cached_property
    def above(self) -> Ancestry:
        """All ancestors of a step, transitively."""
        return Ancestry({step.name: step.depends_on for step in self.steps})

    @cached_property
    def below(self) -> Ancestry:
        """All descendants of a step, transitively."""
        return Ancestry(self.dependents)

    @cached_property
    def below_dynamic(self) -> frozenset[str]:
        """Descendants of dynamic steps: which of their ancestors exist is only known at run time."""
        return frozenset(self.below.reached([step.name for step in self.steps if not step.static]))

    @cached_property
    def input_mappings(self) -> dict[str, InputMapping]:
        """Compiled `inputs` by step, for the steps that have them."""
        from tasker.expressions.mapping import InputMapping  # needed for templates with expressions only

        return {step.name: InputMapping(step.inputs) for step in self.steps if step.inputs is not None}

    @cached_property
    def entries(self) -> dict[str, str]:
        """For each step with `when` or `for_each` the first step made for it, which is created in its place."""
        return {step.made_for: step.name for step in reversed(self.steps) if step.made_for is not None}

    evaluated_below = cached_property(steps_evaluated_below)
    chains = cached_property(steps_in_chains)

    @cached_property
    def in_chains(self) -> frozenset[str]:
        """Steps of `chains`."""
        return frozenset((*self.chains, *(step.name for step in self.chains.values())))

    @cached_property
    def first_expanding(self) -> str | None:
        """First step that creates steps; the graph is known up to it. None if there are several such steps or none."""
        expanding = [step.name for step in self.steps if step.static and step.type.expands]
        return expanding[0] if len(expanding) == 1 else None

    def to_json(self) -> str:
        """Return canonical JSON: sorted keys, no spaces, unescaped UTF-8."""
        return self._json

    @cached_property
    def _json(self) -> str:
        return json.dumps(_fields(self), default=_fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @cached_property
    def id(self) -> TemplateId:
        """Identifier of the plan; its hash is that of what the author wrote, without a fleet's defaults."""
        from tasker.template.content_hash import content_hash  # it imports the retry profiles, which import this module

        return TemplateId(self.namespace, self.name, self.version, content_hash(self))

    def __hash__(self) -> int:
        """Hash the content, so that equal plans have equal hashes."""
        return hash(self.hash)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Restore the plan that `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Restore the plan from the parsed form of `to_json`."""
        values = dict(data)
        values["steps"] = tuple(_step(item) for item in values["steps"])
        values["concurrency"] = StepLimit(**values["concurrency"]) if values.get("concurrency") else None
        for key in ("domain_events", "schedules"):
            values[key] = tuple(values.get(key, ()))
        return cls(**values)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass like `asdict`, without copying nested values."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _step(data: Mapping[str, Any]) -> StepPlan:
    values = dict(data)
    values["type"] = StepType(values["type"])
    values["handler"] = HandlerRef(**values["handler"])
    retry = values["retry"]
    lists = {name: tuple(retry.get(name, ())) for name in ("delays_ms", "never_on", "only_on")}
    values["retry"] = RetryPolicy(**{**retry, **lists})
    values["circuit_breaker"] = StepBreaker(**values["circuit_breaker"]) if values.get("circuit_breaker") else None
    values["limits"] = tuple(StepLimit(**limit) for limit in values.get("limits", ()))
    values["rules"] = tuple(Rule(**{**rule, "then": tuple(rule["then"])}) for rule in values.get("rules", ()))
    values["for_each"] = ForEach(**values["for_each"]) if values.get("for_each") else None
    values["batch"] = BatchSettings(**values["batch"]) if values.get("batch") else None
    for key in ("depends_on", "publishes_events", "inherits", "requires"):
        values[key] = tuple(values.get(key, ()))
    return StepPlan(**values)

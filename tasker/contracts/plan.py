"""The compiled plan: what the template compiler produces, the engine stores and the planner reads.

A plan is immutable and content-addressed. `Plan.to_json` is canonical (sorted keys, no white space), so equal
content has an equal `Plan.hash` on every machine; a task stores the hash and keeps its plan for ever (pinned runs).
A fleet's defaults are part of a stored plan; `Plan.id` names what its author wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import MAX_BACKOFF_MS
from tasker.contracts.defaults.breakers import BREAKER_FAILURES, BREAKER_SUCCESSES, BREAKER_TIMEOUT_SECONDS
from tasker.contracts.defaults.retries import BACKOFF_BASE_MS, BACKOFF_MULTIPLIER, MAX_ATTEMPTS
from tasker.contracts.kinship import Ancestry
from tasker.contracts.step_types import StepType


class TemplateId(NamedTuple):
    """Which template something belongs to. `hash` is its content's, where that is known."""

    namespace: str
    name: str
    version: str
    hash: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.version}"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon a step runs again. Times are milliseconds; `max_attempts` counts executions."""

    retryable: bool = True
    max_attempts: int = MAX_ATTEMPTS
    backoff: str = "exponential"
    backoff_base_ms: int = BACKOFF_BASE_MS
    max_backoff_ms: int = MAX_BACKOFF_MS
    multiplier: float = BACKOFF_MULTIPLIER
    increment_ms: int | None = None
    """Linear only: what each further delay adds. None means `backoff_base_ms`."""
    jitter: float | Literal["full"] = 0.0
    """Share of the delay that may be added or taken away, 0.0 to 1.0; `full`: anything from nothing to the delay."""
    profile: str | None = None
    delays_ms: tuple[int, ...] = ()
    """Delay after the first, second ... failure, in place of `backoff`; the last one repeats."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When a circuit breaker opens and closes."""

    failure_threshold: int = BREAKER_FAILURES
    """Failures in a row that open it."""
    timeout_seconds: float = float(BREAKER_TIMEOUT_SECONDS)  # 30 and 30.0 are not the same content
    """How long it refuses before it lets a trial pass; also how long a trial that never ends keeps others waiting."""
    success_threshold: int = BREAKER_SUCCESSES
    """Successes in a row, half-open, that close it."""


@dataclass(frozen=True, slots=True)
class StepBreaker(BreakerPolicy):
    """The breaker around the handler of a step, in each worker."""

    name: str | None = None
    """What the handler depends on: in a worker the steps with this name and policy share one; None: its own."""


@dataclass(frozen=True, slots=True)
class HandlerRef:
    """Which code runs a step: resolved by the resolver chain, or by the one that `resolver` names."""

    callable: str
    method: str = "call"
    resolver: str | None = None
    initialization: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Advice for batch workers, copied into the inputs of each instance."""

    batch_size: int | None = None
    parallelism: int | None = None
    cursor_field: str = "id"
    worker_template: str | None = None
    failure_strategy: str = "fail_fast"
    checkpoint_interval: int | None = None


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step of the template, with everything that the engine and the worker need to run it."""

    name: str
    type: StepType
    handler: HandlerRef
    ordinal: int
    """Position in topological order (ties broken by the order in the file), from 0."""
    level: int
    """Longest distance from a root; steps of one level may run side by side."""
    depends_on: tuple[str, ...]
    """Declared dependencies, in the order of the file."""
    static: bool
    """True: the step exists from the start of the task. False: an expansion creates it."""
    retry: RetryPolicy = RetryPolicy()
    inherits: tuple[str, ...] = ()
    """Fields of `retry` about which the template says nothing: a fleet's settings give them at submission."""
    timeout_seconds: float | None = None
    """Limit of one attempt; None means the worker's default."""
    execution: str | None = None
    """`async`, `thread` or `process`; None means: by the handler's kind."""
    memory_mb: int | None = None
    """Memory that the child process of a step with `process` may hold, in MB; None: as much as there is."""
    on_worker_lost: str = "retry"
    """`retry` or `fail`: what to do when the worker died after the handler had started."""
    circuit_breaker: StepBreaker | None = None
    """The breaker around the handler; None: there is none."""
    result_schema: Mapping[str, Any] | None = None
    batch: BatchSettings | None = None
    lifecycle: Mapping[str, Any] = field(default_factory=dict)
    system_dependency: str | None = None
    publishes_events: tuple[Mapping[str, Any], ...] = ()
    description: str | None = None


@dataclass(frozen=True)
class Plan:
    """A compiled template.

    `steps` are in topological order: `steps[i].ordinal == i`.
    """

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

    @cached_property
    def by_name(self) -> dict[str, StepPlan]:
        """The steps by name."""
        return {step.name: step for step in self.steps}

    @cached_property
    def dependents(self) -> dict[str, tuple[str, ...]]:
        """For each step the names of the steps that name it as a dependency, in topological order."""
        found: dict[str, list[str]] = {step.name: [] for step in self.steps}
        for step in self.steps:
            for name in step.depends_on:
                found[name].append(step.name)
        return {name: tuple(children) for name, children in found.items()}

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The names of the steps that wait for nothing."""
        return tuple(step.name for step in self.steps if not step.depends_on)

    @cached_property
    def above(self) -> Ancestry:
        """Every step above a step, transitively."""
        return Ancestry({step.name: step.depends_on for step in self.steps})

    @cached_property
    def below(self) -> Ancestry:
        """Every step below a step, transitively."""
        return Ancestry(self.dependents)

    @cached_property
    def below_dynamic(self) -> frozenset[str]:
        """The steps below one that only an expansion creates: of their ancestors it is not known which exist."""
        return frozenset(self.below.reached([step.name for step in self.steps if not step.static]))

    @cached_property
    def first_expanding(self) -> str | None:
        """The step that creates steps before any other does, so that the graph of a task is known until then; None:
        there are several, or none."""
        expanding = [step.name for step in self.steps if step.static and step.type.expands]
        return expanding[0] if len(expanding) == 1 else None

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, UTF-8 as is."""
        return self._json

    @cached_property
    def _json(self) -> str:
        """Kept, since registering needs it more than once."""
        return json.dumps(_fields(self), default=_fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @cached_property
    def id(self) -> TemplateId:
        """What the plan is known by; its hash is that of what the author wrote, whatever a fleet's defaults are."""
        from tasker.contracts.content import content_hash  # which knows the profiles, which are made of this module

        return TemplateId(self.namespace, self.name, self.version, content_hash(self))

    def __hash__(self) -> int:
        """Equal content, equal hash."""
        return hash(self.hash)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """The plan from the parsed form of `to_json`."""
        values = dict(data)
        values["steps"] = tuple(_step(item) for item in values["steps"])
        values["domain_events"] = tuple(values.get("domain_events", ()))
        return cls(**values)


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass: what `asdict` says of it, without copies of everything below."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _step(data: Mapping[str, Any]) -> StepPlan:
    values = dict(data)
    values["type"] = StepType(values["type"])
    values["handler"] = HandlerRef(**values["handler"])
    values["retry"] = RetryPolicy(**{**values["retry"], "delays_ms": tuple(values["retry"].get("delays_ms", ()))})
    values["circuit_breaker"] = StepBreaker(**values["circuit_breaker"]) if values.get("circuit_breaker") else None
    values["batch"] = BatchSettings(**values["batch"]) if values.get("batch") else None
    for key in ("depends_on", "publishes_events", "inherits"):
        values[key] = tuple(values.get(key, ()))
    return StepPlan(**values)

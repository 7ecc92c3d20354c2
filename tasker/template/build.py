"""Conversion of a checked document to the compiled plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tasker.template.approval_keys import approval_of
from tasker.template.child_keys import children_of_step
from tasker.template.condition_plans import ForEach, Rule
from tasker.template.documents import Overrides, StepDraft, StepOverrides, overrides, settings
from tasker.template.effects import ONCE
from tasker.template.generated_steps import RULES, WAIT, WITHOUT_HANDLER
from tasker.template.graph import DependencyGraph
from tasker.template.plan import BatchSettings, HandlerRef, Plan, StepBreaker, StepLimit, StepPlan
from tasker.template.rates import default_burst
from tasker.template.retry import OLDER_KEYS, inherited, retry_policy
from tasker.template.schedules import declared_schedules
from tasker.template.step_types import DEFAULT, Creates, Origin
from tasker.template.wait_keys import NEVER

OWN_IDENTITY = {"unique", "debounce"}
"""Keys of templates that say which submissions are one task."""
KEPT_IN_METADATA = ("task_handler", "loaded_from")


def build_plan(document: Mapping[str, Any], graph: DependencyGraph, environment: str | None) -> Plan:
    """Return the plan of a document without errors, with the environment's overrides applied."""
    overridden = overrides(document, environment)
    events = {event["name"]: event for event in document.get("domain_events", ())}
    owner = (document["namespace_name"], document["name"])
    retained = {key: document[key] for key in KEPT_IN_METADATA if key in document}
    return Plan(
        namespace=document["namespace_name"],
        name=document["name"],
        version=document["version"],
        steps=tuple(_step(name, index, graph, overridden, events, owner) for index, name in enumerate(graph.order)),
        description=document.get("description"),
        input_schema=document.get("input_schema"),
        identity_strategy=document.get(
            "identity_strategy", "always_unique" if OWN_IDENTITY & document.keys() else "strict"
        ),
        lifecycle=document.get("lifecycle", {}),
        metadata={**document.get("metadata", {}), **retained},
        system_dependencies=_systems(document),
        domain_events=tuple(document.get("domain_events", ())),
        environment=environment,
        tenant=document.get("tenant", {}).get("from"),
        unique=document["unique"].get("key", {}) if "unique" in document else None,
        debounce=_debounce(document.get("debounce")),
        max_submits_per_minute=document.get("max_submits_per_minute"),
        expires_in_seconds=document.get("expires_in"),
        schedules=declared_schedules(document),
        deadline_seconds=document.get("deadline"),
        priority=document.get("priority", 0),
        release=document.get("release", "by_age"),
        fairness=_fairness(document.get("fairness")),
        task_events=document.get("task_events", False),
        concurrency=_limit_of_tasks(owner, document.get("concurrency")),
    )


def _systems(document: Mapping[str, Any]) -> dict[str, Any]:
    systems = document.get("system_dependencies")
    return {} if systems is None else {"primary": "default", "secondary": [], **systems}


Events = Mapping[str, Mapping[str, Any]]


def _step(
    name: str, ordinal: int, graph: DependencyGraph, overridden: Overrides, events: Events, owner: tuple[str, str]
) -> StepPlan:
    draft = graph.steps[name]
    values = draft.values
    handler = values.get("handler") or {
        "callable": WAIT if draft.type is not None and draft.type.traits.waits else RULES
    }
    has_inputs = handler["callable"] not in WITHOUT_HANDLER or (draft.type or DEFAULT).starts_children
    chosen = settings(draft, overridden if has_inputs else {})
    return StepPlan(
        name=name,
        type=draft.type or DEFAULT,
        handler=_handler(handler, chosen),
        ordinal=ordinal,
        level=graph.levels[name],
        depends_on=graph.depends_on(name),
        static=graph.is_static(name),
        retry=retry_policy(draft, chosen),
        inherits=inherited(draft, chosen),
        timeout_seconds=None if chosen.timeout_seconds is None else float(chosen.timeout_seconds),
        delay_seconds=values.get("delay"),
        not_before=values.get("not_before"),
        limits=_limits((*owner, name), values),
        requires=tuple(sorted({*values.get("requires", ())})),
        slots=values.get("slots", 1),
        wait=_wait(draft),
        execution=values.get("execution", {}).get("mode"),
        memory_mb=values.get("execution", {}).get("memory_mb"),
        on_worker_lost="fail" if values.get("effect") == ONCE else values.get("on_worker_lost", "retry"),
        effect=values.get("effect"),
        memoize=_memoize(values.get("memoize")),
        on_failure=draft.on_failure,
        run_on_failure=draft.run_on_failure,
        handles=draft.handles,
        at_rest=draft.at_rest,
        undoes=draft.undoes,
        circuit_breaker=step_breaker(values.get("circuit_breaker")),
        result_schema=values.get("result_schema"),
        inputs=chosen.inputs if draft.undoes is None else settings(graph.steps[draft.undoes], overridden).inputs,
        rules=tuple(_rule(rule) for rule in values.get("rules", ())),
        for_each=None if (draft.type or DEFAULT).starts_children else _for_each(values),
        made_for=draft.made_for,
        batch=_batch(draft, graph),
        lifecycle={k: v for k, v in values.get("lifecycle", {}).items() if k not in OLDER_KEYS},
        system_dependency=values.get("system_dependency"),
        publishes_events=tuple(_event(event, events) for event in values.get("publishes_events", ())),
        description=values.get("description"),
    )


def _rule(values: Mapping[str, Any]) -> Rule:
    return Rule(tuple(values.get("then", values.get("else", ()))), values.get("when"), values.get("because"))


def _wait(draft: StepDraft) -> dict[str, Any] | None:
    values, waits = draft.values, None if draft.type is None else draft.type.traits.waits
    if waits is None:
        return None
    if waits == "task":
        return children_of_step(values)
    if waits == "time":
        return {"on": waits, "for_seconds": values.get("for"), "until": values.get("until")}
    timeout = values.get("timeout", NEVER)
    ends = {"on": waits, "for_seconds": None if timeout == NEVER else timeout}
    if waits == "person":
        return ends | approval_of(values)
    return ends | {
        "events": [
            {"event": event["event"], "key": event.get("key"), "schema": event.get("schema")}
            for event in values.get("events") or [values]
        ],
        "take": values.get("take", "first"),
        "count": values.get("count", 1),
        "since": values.get("since", "task"),
    }


def _for_each(values: Mapping[str, Any]) -> ForEach | None:
    if (each := values.get("for_each")) is None:
        return None
    return ForEach(
        each["in"],
        each.get("as", "item"),
        each.get("batch_size", 1),
        each.get("on_error", "fail"),
        each.get("result_schema"),
    )


def _limits(names: tuple[str, str, str], values: Mapping[str, Any]) -> tuple[StepLimit, ...]:
    """Return the limits of the step of these names: namespace, template, step."""
    found = []
    if (limit := values.get("concurrency")) is not None:
        scope = limit.get("scope", "step")
        shared = {"namespace": names[:1], "template": names[:2], "step": names}[scope]
        found.append(StepLimit(f"{scope} {'/'.join(shared)}", limit.get("key"), limit["limit"]))
    if (limit := values.get("rate_limit")) is not None:
        rate = limit["rate"]
        burst = float(limit.get("burst", default_burst(rate)))
        found.append(StepLimit(f"rate step {'/'.join(names)}", limit.get("key"), None, rate, burst))
    found += [StepLimit(limit["name"], limit.get("key")) for limit in values.get("limits", ())]
    return tuple(found)


def _limit_of_tasks(names: tuple[str, str], values: Mapping[str, Any] | None) -> StepLimit | None:
    if values is None:
        return None
    name = f"task {'/'.join(names)}"
    return StepLimit(name, values.get("key"), values["limit"], on_limit=values.get("on_limit", "wait"))


def _memoize(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if values is None else {"key": values.get("key"), "ttl_seconds": values["ttl"]}


def _debounce(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    wait = values["wait"]
    longest = values.get("max_wait", 10 * wait)
    return {"key": values.get("key"), "wait": wait, "max_wait": longest, "keep": values.get("keep", "latest")}


def _fairness(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    weights = {value: float(weight) for value, weight in values.get("weights", {}).items()}
    return {"key": values["key"]["input"], "weights": weights, "default": float(values.get("default", 1))}


def _handler(values: Mapping[str, Any], chosen: StepOverrides) -> HandlerRef:
    method = values.get("method", "call")
    return HandlerRef(values["callable"], method, values.get("resolver"), chosen.initialization)


def step_breaker(values: Mapping[str, Any] | None) -> StepBreaker | None:
    """Return the breaker with the given values over the defaults; an empty block is a breaker with the defaults."""
    if values is None:
        return None
    policy = StepBreaker(**values)
    return replace(policy, timeout_seconds=float(policy.timeout_seconds))


def _event(values: Mapping[str, Any], events: Events) -> dict[str, Any]:
    """Return the settings of an event: the step's own over those of the template's list of events."""
    return {"condition": "success", "delivery_mode": "durable", **events.get(values["name"], {}), **values}


def _batch(draft: StepDraft, graph: DependencyGraph) -> BatchSettings | None:
    """Return the batch settings: a batch_worker without its own inherits those of its batchable step."""
    config = draft.values.get("batch_config")
    if graph.is_from(draft.name, Origin.BATCH):
        batchable = next(p for p in graph.parents[draft.name] if graph.makes(p, Creates.BATCHES))
        config = config or graph.steps[batchable].values.get("batch_config", {})
    return None if config is None else BatchSettings(**config)

"""Conversion of a plan back to a template: canonical keys, defaults filled in, overrides applied."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import yaml

from tasker.expressions.path import place_text
from tasker.template.child_keys import keys_of_children
from tasker.template.compensations import UNDO
from tasker.template.condition_plans import Rule
from tasker.template.durations import duration_text
from tasker.template.failure_words import FAIL_TASK, OPTIONAL, RUN
from tasker.template.plan import Plan, RetryPolicy, StepLimit, StepPlan
from tasker.template.rates import default_burst, rate_text
from tasker.template.retry import INHERITED, RETRY_PROFILES
from tasker.template.schedules import ScheduleSpec
from tasker.template.step_types import DEFAULT
from tasker.template.wait_keys import NEVER
from tasker.template.yaml import convert


def normalized_yaml(plan: Plan) -> str:
    """Return YAML that compiles to the same plan except for the environment's name."""
    return yaml.dump(
        normalized(plan), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False
    )


def normalized(plan: Plan) -> dict[str, Any]:
    """Return the plan as the mapping of a template."""
    return _without_empty(
        {
            "name": plan.name,
            "namespace_name": plan.namespace,
            "version": plan.version,
            "description": plan.description,
            "metadata": plan.metadata,
            "system_dependencies": plan.system_dependencies,
            "identity_strategy": plan.identity_strategy,
            "lifecycle": plan.lifecycle,
            "tenant": None if plan.tenant is None else {"from": place_text(plan.tenant)},
            "unique": _unique(plan),
            "debounce": _debounce(plan),
            "max_submits_per_minute": plan.max_submits_per_minute,
            "expires_in": None if plan.expires_in_seconds is None else duration_text(plan.expires_in_seconds),
            "schedules": [{"name": each["name"], **ScheduleSpec.parse(each["spec"]).keys()} for each in plan.schedules],
            "deadline": None if plan.deadline_seconds is None else duration_text(plan.deadline_seconds),
            "priority": plan.priority or None,
            "release": None if plan.release == "by_age" else plan.release,
            "fairness": _fairness(plan),
            "task_events": plan.task_events or None,
            "concurrency": _limit_of_tasks(plan),
            "domain_events": list(plan.domain_events),
            "input_schema": plan.input_schema,
            "finally": [step.name for step in plan.steps if step.at_rest],
            "steps": [_step(step, plan) for step in plan.steps if step.made_for is None and step.undoes is None],
        },
        keep=("input_schema",),
    )


def _step(step: StepPlan, plan: Plan) -> dict[str, Any]:
    entry = plan.by_name[plan.entries.get(step.name, step.name)]
    each = None if step.for_each is None else asdict(step.for_each)
    schema = each.pop("result_schema") if each is not None else None if step.wait else step.result_schema
    return _without_empty(
        {
            "name": step.name,
            "type": str(step.type if each is None else DEFAULT),
            "description": step.description,
            "handler": _without_empty(asdict(step.handler)) if step.has_handler else None,
            "when": entry.rules[0].when if entry.made_for is not None and entry.rules else None,
            "rules": [_rule(rule) for rule in step.rules],
            "for_each": each and {"in": each["items"], "as": each["name"]} | {k: each[k] for k in BATCH_KEYS},
            "dependencies": [
                name for name in entry.depends_on if plan.by_name[name].made_for is None and not step.at_rest
            ],
            "system_dependency": step.system_dependency,
            "retry": _retry(step) if step.wait is None else None,
            "lifecycle": step.lifecycle,
            "timeout_seconds": step.timeout_seconds,
            "delay": None if step.delay_seconds is None else duration_text(step.delay_seconds),
            "not_before": _start_text(step.not_before),
            **_wait(step.wait or {}),
            "concurrency": _limit(step, rate=False),
            "rate_limit": _limit(step, rate=True),
            "limits": [_named_limit(limit) for limit in step.limits if limit.is_named],
            "on_failure": _on_failure(step),
            "compensate": _compensate(plan.by_name.get(step.name + UNDO)),
            "optional": step.on_failure == OPTIONAL or None,
            "requires": list(step.requires),
            "slots": None if step.slots == 1 else step.slots,
            "execution": _without_empty({"mode": step.execution, "memory_mb": step.memory_mb}),
            "on_worker_lost": step.on_worker_lost if step.has_handler else None,
            "effect": step.effect,
            "memoize": step.memoize
            and _without_empty(
                {
                    "key": step.memoize["key"] and place_text(step.memoize["key"]),
                    "ttl": duration_text(step.memoize["ttl_seconds"]),
                }
            ),
            "circuit_breaker": _without_empty(asdict(step.circuit_breaker)) if step.circuit_breaker else None,
            "publishes_events": [dict(event) for event in step.publishes_events],
            "batch_config": _without_empty(asdict(step.batch)) if step.batch and each is None else None,
            "result_schema": schema,
            "inputs": step.inputs,
        },
        keep=("result_schema", "inputs"),
    )


def _compensate(undo: StepPlan | None) -> dict[str, Any] | None:
    if undo is None or undo.undoes is None:
        return None
    handler = _without_empty(asdict(undo.handler))
    return _without_empty({"handler": handler, "retry": _retry(undo), "timeout_seconds": undo.timeout_seconds})


def _on_failure(step: StepPlan) -> str | dict[str, Any] | None:
    if step.on_failure == RUN:
        return {"run": step.run_on_failure}
    return None if step.on_failure in (FAIL_TASK, OPTIONAL) else step.on_failure


BATCH_KEYS = ("batch_size", "on_error")


def _wait(wait: Mapping[str, Any]) -> dict[str, Any]:
    if wait.get("on") == "task":
        return keys_of_children(wait)
    seconds, until = wait.get("for_seconds"), wait.get("until")
    if "events" in wait:
        events = [
            _without_empty({**event, "key": event["key"] and place_text(event["key"])}, keep=("schema",))
            for event in wait["events"]
        ]
        several = {"events": events} if len(events) > 1 else events[0]
        defaults = {"take": "first", "count": 1, "since": "task"}
        more = {key: wait[key] for key, value in defaults.items() if wait[key] != value}
        return {**several, "timeout": NEVER if seconds is None else duration_text(seconds), **more}
    if wait.get("on") == "person":
        return _approval(wait)
    end = dict(until) if until and "next" in until else _start_text(until)
    return {"for": None if seconds is None else duration_text(seconds), "until": end}


def _approval(wait: Mapping[str, Any]) -> dict[str, Any]:
    every, after, seconds = wait["remind_seconds"], wait["escalate_seconds"], wait["for_seconds"]
    to = _persons(wait["escalate_subjects"], wait["escalate_permissions"])
    return {
        "form": wait["form"],
        "from": _persons(wait["subjects"], wait["permissions"]),
        "quorum": wait["quorum"] if wait["quorum"] > 1 else None,
        "reject": wait["reject"] if wait["reject"] != "first" else None,
        "on_reject": wait["on_reject"] if wait["on_reject"] != "complete" else None,
        "reminders": None if every is None else {"every": duration_text(every), "count": wait["reminders"]},
        "escalate": None if after is None else {"after": duration_text(after), "to": to},
        "timeout": NEVER if seconds is None else duration_text(seconds),
    }


def _persons(subjects: Sequence[Any] | None, permissions: Sequence[str] | None) -> dict[str, Any]:
    names = [name if isinstance(name, str) else f"${{{place_text(name)}}}" for name in subjects or ()]
    return _without_empty({"subjects": names, "permissions": list(permissions or ())})


def _rule(rule: Rule) -> dict[str, Any]:
    names = {"else": list(rule.then)} if rule.when is None else {"when": rule.when, "then": list(rule.then)}
    return names if rule.because is None else {**names, "because": rule.because}


def _unique(plan: Plan) -> str | dict[str, Any] | None:
    if plan.unique is None:
        return None
    return {"key": place_text(plan.unique)} if plan.unique else "while_running"


def _debounce(plan: Plan) -> dict[str, Any]:
    if (debounce := plan.debounce) is None:
        return {}
    key = None if debounce["key"] is None else place_text(debounce["key"])
    times = {name: duration_text(debounce[name]) for name in ("wait", "max_wait")}
    return _without_empty({"key": key, **times, "keep": debounce["keep"]})


def _limit_of_tasks(plan: Plan) -> dict[str, Any]:
    if (limit := plan.concurrency) is None:
        return {}
    key = None if limit.key is None else place_text(limit.key)
    return _without_empty({"key": key, "limit": limit.max_running, "on_limit": limit.on_limit})


def _fairness(plan: Plan) -> dict[str, Any]:
    if (fairness := plan.fairness) is None:
        return {}
    key = place_text({"input": fairness["key"]})
    return _without_empty({"key": key, "weights": fairness["weights"], "default": fairness["default"]})


def _named_limit(limit: StepLimit) -> str | dict[str, str]:
    return limit.name if limit.key is None else {"name": limit.name, "key": place_text(limit.key)}


def _limit(step: StepPlan, rate: bool) -> dict[str, Any]:
    for limit in step.limits:
        key = None if limit.key is None else place_text(limit.key)
        if rate and limit.rate is not None:
            burst = None if limit.burst == default_burst(limit.rate) else int(limit.burst or 1)
            return _without_empty({"key": key, "rate": rate_text(limit.rate), "burst": burst})
        if not rate and limit.max_running is not None:
            return _without_empty({"key": key, "limit": limit.max_running, "scope": limit.name.partition(" ")[0]})
    return {}


def _retry(step: StepPlan) -> dict[str, Any]:
    if step.inherits == INHERITED:
        return {}  # the step has no retry settings of its own; a fleet's settings apply
    keys = (
        "retryable",
        "max_attempts",
        "backoff",
        "backoff_base_ms",
        "increment_ms",
        "max_backoff_ms",
        "jitter",
        "profile",
    )
    values = asdict(step.retry)
    rules = {key: list(values[key]) for key in ("never_on", "only_on") if values[key]}
    elapsed = values["max_elapsed_ms"]
    limit = {} if elapsed is None else {"max_elapsed": duration_text(elapsed / 1000)}
    return {key: values[key] for key in keys if values[key] is not None} | _multiplier(step) | limit | rules


def _multiplier(step: StepPlan) -> dict[str, float]:
    """Return the multiplier if neither profile nor default provides it."""
    written, base = step.retry.multiplier, RETRY_PROFILES.get(step.retry.profile or "", RetryPolicy())
    inherited = "multiplier" in step.inherits or (step.retry.profile and written == base.multiplier)
    return {} if inherited else {"backoff_multiplier": written}


def _without_empty(values: Mapping[str, Any], keep: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the values without unset ones; an empty schema in `keep` counts as set."""
    empty: tuple[Any, ...] = (None, {}, [])
    return {k: v for k, v in values.items() if v not in empty or (k in keep and v is not None)}


class _Dumper(yaml.SafeDumper):
    """YAML dumper that also quotes text which YAML 1.2 would read as another type; PyYAML only does so for YAML 1.1."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: repeat shared values, so that readers need not follow anchors."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # PyYAML's other styles turn the rarer line breaks into spaces.
    style = '"' if any(c in text for c in "\x85\u2028\u2029") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_NUMBERS = (convert.DECIMAL, convert.OCTAL, convert.HEXADECIMAL, convert.FLOAT)
_LOOKS_LIKE_A_NUMBER = re.compile("|".join(f"(?:{pattern.pattern})$" for pattern in _NUMBERS))

_Dumper.add_representer(str, _text)
_Dumper.add_implicit_resolver("!number", _LOOKS_LIKE_A_NUMBER, list("-+.0123456789"))


def _start_text(start: Mapping[str, Any] | None) -> str | None:
    if start is None:
        return None
    return str(start["time"]) if "time" in start else place_text(start)

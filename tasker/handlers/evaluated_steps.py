"""Results of steps without a handler, and the items of steps with `for_each`: values of expressions.

Nothing here depends on anything but the plan and the scope, so that a further attempt decides the same.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from tasker.expressions.mapping import computed, value_of
from tasker.expressions.values import Budget
from tasker.handlers.outcome_forms import BATCH_KEY, DECISION_KEY, WIRE, BatchType, DecisionType
from tasker.template.condition_plans import ForEach, Rule
from tasker.template.plan import StepPlan

SHOWN = 200
"""Characters of a condition that its reason shows."""
REASON, RULE = "reason", "rule"
"""Keys of a decision's result: why it decided so, and the number of the rule that applied, from 1."""


def evaluated_result(step: StepPlan, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a step without a handler. Raises `tasker.expressions.mapping.MappingFailure`."""
    if step.for_each is not None:
        return _batches(step, step.for_each, len(_items(step.for_each, scope)))
    budget = Budget()
    for number, rule in enumerate(step.rules):
        path = ("when",) if step.made_for is not None else ("rules", number, "when")
        if rule.when is None or value_of(rule.when, path, bool, scope, budget):
            return _decision(rule.then, number + 1, _reason(rule, number, scope, budget))
    reason = f"{_shown(step.rules[0])} is false" if step.made_for is not None else "no rule applies"
    return _decision((), None, reason)


def _decision(names: Sequence[str], rule: int | None, reason: str) -> dict[str, Any]:
    if names:
        outcome = {WIRE.type_key: DecisionType.CREATE_STEPS.value, WIRE.names_key: list(names)}
    else:
        outcome = {WIRE.type_key: DecisionType.NO_BRANCHES.value}
    return {DECISION_KEY: outcome, RULE: rule, REASON: reason}


def _reason(rule: Rule, number: int, scope: Mapping[str, Any], budget: Budget) -> str:
    if rule.because is None:
        return "no other rule applies" if rule.when is None else f"{_shown(rule)} is true"
    value = computed(rule.because, ("rules", number, "because"))(scope, budget)
    return value if isinstance(value, str) else str(value)


def _shown(rule: Rule) -> str:
    text = " ".join((rule.when or "").split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _items(each: ForEach, scope: Mapping[str, Any]) -> list[Any]:
    items: list[Any] = value_of(each.items, ("for_each",), list, scope, Budget())
    return items


def _batches(step: StepPlan, each: ForEach, count: int) -> dict[str, Any]:
    if count == 0:
        return {BATCH_KEY: {"type": BatchType.NO_BATCHES.value}}
    starts = range(0, count, each.batch_size)
    cursors = [{"start_cursor": start, "end_cursor": min(start + each.batch_size, count)} for start in starts]
    outcome = {
        "type": BatchType.CREATE_BATCHES.value,
        "worker_template_name": step.made_for,
        "worker_count": len(cursors),
        "cursor_configs": cursors,
        "total_items": count,
    }
    return {BATCH_KEY: outcome}


def item_scopes(
    each: ForEach,
    inputs: Mapping[str, Any] | None,
    scope: Mapping[str, Any],
    lists: MutableMapping[str, list[Any]] | None = None,
) -> list[tuple[int, dict[str, Any]]]:
    """Return the positions and scopes of the items of an instance, whose own `inputs` have its part of the list.

    `lists` are those of the task that were evaluated before: the list is looked up there, or added.
    Raises `tasker.expressions.mapping.MappingFailure`.
    """
    if inputs is None or inputs.get("is_no_op"):
        return []
    cursor = inputs["cursor"]
    start, end = cursor["start_cursor"], cursor["end_cursor"]
    known = {} if lists is None else lists
    if each.items not in known:
        known[each.items] = _items(each, scope)
    items = enumerate(known[each.items][start:end], start)
    return [(index, {**scope, each.name: item, "index": index}) for index, item in items]

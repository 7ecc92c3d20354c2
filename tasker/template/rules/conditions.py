"""Rules of `when`, `rules` and `for_each`, and of overridden inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.documents import EVERY_STEP, DocumentReading, StepDraft, entries
from tasker.template.generated_steps import CONDITION, CUT, may_have_condition
from tasker.template.graph import DependencyGraph
from tasker.template.step_types import DEFAULT, Creates

MOST_CONDITIONS = 50
"""Largest number of conditions and rules one after the other."""
OF_HANDLERS = (
    "handler",
    "inputs",
    "result_schema",
    "retry",
    "timeout_seconds",
    "execution",
    "on_worker_lost",
    "effect",
    "memoize",
    "circuit_breaker",
)
"""Keys that have no effect on a step without a handler."""
RESERVED = ("input", "steps", "task", "attempt", "index", "true", "false", "null", "in")
"""Names that an item cannot have."""


def keys_fit_their_step(graph: DependencyGraph) -> None:
    """Check that `when`, `rules` and `for_each` are on steps that can have them."""
    for step in graph.steps.values():
        if step.made_for is not None or step.type is None:
            continue
        if "when" in step.values and not may_have_condition(_written_type(step)):
            _report_condition(step)
        if "for_each" in step.values and _written_type(step) is not DEFAULT and not step.type.starts_children:
            message = f"`for_each` repeats a standard step, and `{step.name}` is a {_written_type(step)} step"
            step.report("T065", message, step.reading.key(*step.path, "for_each"), "remove `type`, or `for_each`")
        if "for_each" in step.values and "batch_config" in step.values:
            message = "`batch_config` has no effect together with `for_each`"
            hint = "write `for_each: {in: ..., batch_size: ...}`"
            step.report("T065", message, step.reading.key(*step.path, "batch_config"), hint)
        if "rules" in step.values:
            _check_rules_alone(step)
        _check_item_name(step)


def _written_type(step: StepDraft) -> Any:
    return DEFAULT if step.depends_on == (step.name + CUT,) else step.type


def _report_condition(step: StepDraft) -> None:
    if step.type is not None and step.type.converges:
        message = f"`{step.name}` is a convergence, which cannot have `when`: it always runs"
        hint = "put the condition on a step below it"
    else:
        message = f"`{step.name}` has `type: {step.type}`, and cannot have `when`: its batchable step creates it"
        hint = "put the condition on the batchable step"
    step.report("T065", message, step.reading.key(*step.path, "when"), hint)


def _check_rules_alone(step: StepDraft) -> None:
    if step.type is not None and step.type.creates is not Creates.BRANCHES:
        hint = "write `type: decision`, or leave `type` out"
        step.report("T065", f"`rules` decide, and `{step.name}` has `type: {step.type}`", step.location("type"), hint)
    for key in OF_HANDLERS:
        if key in step.values:
            message = f"`{key}` has no effect together with `rules`: the step has no handler"
            step.report("T065", message, step.reading.key(*step.path, key), "remove one of them")


def _check_item_name(step: StepDraft) -> None:
    each = step.values.get("for_each")
    name = each.get("as") if isinstance(each, Mapping) else None
    if name in RESERVED:
        hint = "choose another name"
        step.report("T026", f"`{name}` has a meaning in expressions", step.location("for_each", "as"), hint)


def names_are_free(graph: DependencyGraph, written: Mapping[str, StepDraft]) -> None:
    """Check that nothing is named like a generated step, and that only convergences name one as a dependency."""
    generated = {step.name: step for step in graph.steps.values() if step.made_for is not None}
    claimed = set(_claimed(written))
    for name, step in written.items():
        if name in claimed:
            owner = name.rpartition(".")[0]
            message = f"`{name}` is the name of a step that is made for `{owner}`"
            step.report("T069", message, step.name_location(), "choose another name")
        if step.type is not None and step.type.converges:
            continue
        for parent in [parent for parent in step.depends_on if parent in generated]:
            owner = generated[parent].title
            message = f"`{parent}` decides about `{owner}` alone"
            step.report("T069", message, step.dependency_location(parent), f"depend on `{owner}`")


def _claimed(written: Mapping[str, StepDraft]) -> Iterator[str]:
    for name, step in written.items():
        yield from (name + end for key, end in (("when", CONDITION), ("for_each", CUT)) if key in step.values)


def rules_name_their_branches(graph: DependencyGraph) -> None:
    """Check that rules name branches of their decision, that each can apply, and that each branch is taken by one."""
    for step in graph.steps.values():
        rules = step.values.get("rules")
        if step.made_for is not None or not isinstance(rules, list):
            continue
        branches = {
            graph.steps[child].title: child
            for child in graph.children[step.name]
            if graph.is_plain(child) or graph.steps[child].made_for is not None
        }
        taken: set[str] = set()
        complete = True
        for number, rule in enumerate(rules):
            if not isinstance(rule, dict):
                complete = False
                continue
            complete = _check_parts(step, number, rule) and complete
            for key in ("then", "else"):
                taken.update(_check_names(step, number, key, rule.get(key, ()), branches, graph))
        _check_order(step, rules)
        missing = [name for name in branches if name not in taken]
        if missing and complete and graph.complete and not graph.tainted:
            message = f"no rule takes the branch {listed(missing[:1])} of `{step.name}`"
            child = graph.steps[branches[missing[0]]]
            hint = "name it under `then` of a rule, or remove the dependency"
            step.report("T079", message, child.location("dependencies"), hint)


def _check_parts(step: StepDraft, number: int, rule: Mapping[str, Any]) -> bool:
    """Check that a rule has `when` and `then`, or `else` alone."""
    path = (*step.path, "rules", number)
    has = {key for key in ("when", "then", "else") if step.reading.has(*path, key)}
    if has in ({"when", "then"}, {"else"}):
        return True
    place = step.reading.key(*path, "else" if "else" in has else "when" if "when" in has else "then")
    message = f"a rule has `when` and `then`, or `else` alone; found {listed(sorted(has)) or 'none of them'}"
    step.report("T065", message, place, "write {when: EXPRESSION, then: [STEP]} or {else: [STEP]}")
    return False


def _check_names(
    step: StepDraft, number: int, key: str, names: Any, branches: Mapping[str, str], graph: DependencyGraph
) -> list[str]:
    taken = [name for name in names if isinstance(name, str)]
    for position, name in enumerate(taken):
        if name in branches:
            continue
        if name in graph.steps and not graph.is_plain(name):
            message = f"`{name}` has `type: {graph.steps[name].type}`, and is created without a rule"
            hint = "remove it here"
        elif name in graph.steps:
            message = f"`{name}` is not a branch of `{step.name}`"
            hint = f"add `{step.name}` to the dependencies of `{name}`"
        else:
            message = f"there is no step `{name}`"
            hint = did_you_mean(name, branches) or f"branches: {listed(branches) or 'none'}"
        if "${" in name:
            step.report("T066", "a name of a step is not an expression", _name_place(step, number, key, position), hint)
        elif not graph.tainted:
            step.report("T067", message, _name_place(step, number, key, position), hint)
    return taken


def _name_place(step: StepDraft, number: int, key: str, position: int) -> Any:
    return step.reading.value(*step.path, "rules", number, key, position)


def _check_order(step: StepDraft, rules: list[Any]) -> None:
    """Warn about rules after one that always applies, and rules that never do."""
    always: int | None = None
    for number, rule in enumerate(rules):
        if not isinstance(rule, dict):
            continue
        condition = str(rule.get("when", "")).strip()
        place = step.reading.value(*step.path, "rules", number)
        if always is not None:
            message = f"the rule never applies: rule {always + 1} always does"
            step.report("T079", message, place, "remove it, or move it up")
            return
        if condition == "false":
            step.report("T079", "the rule never applies", place, "remove it")
        if "else" in rule or condition == "true":
            always = number


def chain_is_short(graph: DependencyGraph) -> None:
    """Check that at most 50 conditions follow each other."""
    depth: dict[str, int] = {}
    for name in graph.order:
        step = graph.steps[name]
        depth[name] = max((depth[parent] for parent in graph.parents[name]), default=0) + ("rules" in step.values)
        if depth[name] > MOST_CONDITIONS:
            message = f"`{step.title}` is behind {MOST_CONDITIONS} other conditions"
            place = step.reading.key(*step.path, "rules" if step.made_for is None else "when")
            step.report("T068", message, place, "decide more in one step with `rules`")
            return


def handlers_are_names(graph: DependencyGraph) -> None:
    """Check that no handler is given by an expression."""
    for step in graph.steps.values():
        handler = step.values.get("handler", {})
        for key in ("callable", "method"):
            if step.made_for is None and "${" in str(handler.get(key, "")):
                hint = "write `rules` or `when`, with a step for each handler"
                message = f"the `{key}` of a handler is not an expression"
                step.report("T066", message, step.location("handler", key), hint)


def overridden_inputs_exist(
    steps: Mapping[str, StepDraft], document: Mapping[str, Any], reading: DocumentReading
) -> None:
    """Check that environments override the inputs of steps that have some."""
    for environment in document.get("environments", {}):
        for path, override in entries(document, environment):
            if "inputs" not in override:
                continue
            name, place = override["name"], reading.key(*path, "inputs")
            if name == EVERY_STEP:
                reading.report.add("T065", "`ALL` cannot override inputs", place, "name the step")
            elif name in steps and "inputs" not in steps[name].values:
                message = f"`{name}` has no `inputs` to override"
                reading.report.add("T065", message, place, f"give `{name}` these inputs in its own place, too")

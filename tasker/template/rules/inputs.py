"""Rules of expressions: each fits what the schemas say about its step's surroundings."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tasker.template.ancestry import Ancestry
from tasker.template.diagnostics import Position
from tasker.template.documents import Path, StepDraft, entries
from tasker.template.failure_words import WORDS
from tasker.template.generated_steps import RESULTS, RESULTS_OF_ITEM
from tasker.template.graph import DependencyGraph
from tasker.template.rules.builtin import builtin_of, check_names, type_of_builtin_result
from tasker.template.rules.builtin import check_step as check_builtin
from tasker.template.rules.unread import paths_read, report_unread
from tasker.template.step_types import Origin
from tasker.template.yaml.positions import position_inside

if TYPE_CHECKING:
    from tasker.expressions.check_scope import CheckScope
    from tasker.expressions.mapping import Part
    from tasker.expressions.syntax import Problem
    from tasker.expressions.types import Type
    from tasker.template.plan import Plan, StepPlan
    from tasker.template.step_types import StepType

CODES = {
    "syntax": "T090",
    "name": "T091",
    "type": "T092",
    "optional": "T093",
    "step": "T094",
    "branch": "T095",
    "undescribed": "T077",
}


def expressions_fit(graph: DependencyGraph, document: Mapping[str, Any], strict: bool) -> None:
    """Check every expression of every step; what a step reads is checked if the graph has no cycle.

    `strict`: warn about values that no schema describes, and about described ones that nothing reads.
    """
    check_names(graph.steps.values())
    steps = {name: step for name, step in graph.steps.items() if KEYS.intersection(step.values) or builtin_of(step)}
    overridden = _overridden_inputs(graph, document)
    if not steps and not overridden:
        return
    scopes = None if graph.cyclic else _Scopes(graph, document, strict)
    if strict and not graph.cyclic:
        report_unread(graph, document, _all_paths(graph))
    for name in graph.order if scopes else graph.steps:  # the result of a built-in step has the types of its inputs
        if (step := steps.get(name)) is not None:
            _check_step(step, scopes if name not in graph.tainted else None)
    for step, text in overridden:
        check_text(step, text, scopes.of(step) if scopes and step.name not in graph.tainted else None)


def _check_step(step: StepDraft, scopes: _Scopes | None) -> None:
    scope = None if scopes is None else scopes.of(step)
    types: dict[Path, Type] = {}
    for text in _expressions(step):
        type_ = check_text(step, text, scope)
        if type_ is not None and text.path[: len(step.path) + 1] == (*step.path, "inputs"):
            types[text.path[len(step.path) + 1 :]] = type_
    if builtin_of(step):
        step = _for_one_item(step)
        check_builtin(step, types)
        if scopes is not None and scope is not None:
            scopes.know_result(step, types, scope)


def _for_one_item(step: StepDraft) -> StepDraft:
    """Return the step as its handler sees it: with `for_each`, the `result_schema` is that of one item."""
    each = step.values.get("for_each")
    if not isinstance(each, Mapping) or RESULTS_OF_ITEM not in each:
        return step
    values = {key: value for key, value in step.values.items() if key != "result_schema"}
    schema = each[RESULTS_OF_ITEM]
    return replace(step, values=values if schema is None else {**values, "result_schema": schema})


ANY_TYPE = "any"
"""`ExpressionText.wants` of a bare expression whose value may have any type."""
KEYS = frozenset({"inputs", "rules", "for_each"})
"""Keys with expressions; `when` has become a rule of its own step."""


def _all_paths(graph: DependencyGraph) -> Iterator[tuple[Any, ...]]:
    from tasker.expressions.mapping import Part, split_text
    from tasker.expressions.syntax import ExpressionError, parse

    for step in graph.steps.values():
        for text in _expressions(step):
            with suppress(ExpressionError):  # reported elsewhere
                parts = [Part(0, text.text)] if text.wants is not None else split_text(text.text)
                for part in parts:
                    if isinstance(part, Part):
                        yield from paths_read(parse(part.text))


class ExpressionText(NamedTuple):
    """Text with expressions, or a bare expression whose value has the type `wants`."""

    path: tuple[str | int, ...]
    text: str
    wants: str | None = None
    what: str = ""


def _expressions(step: StepDraft) -> Iterator[ExpressionText]:
    """Yield the texts with expressions that the step itself evaluates."""
    values = step.values
    if isinstance(values.get("inputs"), dict):
        yield from _texts((*step.path, "inputs"), values["inputs"])
    if _evaluates_list(step):
        yield ExpressionText(
            (*step.path, "for_each", "in"), values["for_each"]["in"], "list", "`for_each` expects a list"
        )
    rules = values.get("rules")
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        path = (*step.path, "when") if step.made_for is not None else (*step.path, "rules", number, "when")
        if isinstance(rule, dict) and isinstance(rule.get("when"), str):
            yield ExpressionText(path, rule["when"], "bool", "a condition is a bool")
        if isinstance(rule, dict) and "because" in rule:
            yield from _texts((*step.path, "rules", number, "because"), rule["because"])


def _evaluates_list(step: StepDraft) -> bool:
    """Return whether the step itself evaluates the list of its `for_each`."""
    each = step.values.get("for_each")
    starts_children = step.type is not None and step.type.starts_children
    return isinstance(each, Mapping) and "in" in each and (step.made_for is not None or starts_children)


def _texts(path: tuple[str | int, ...], value: Any) -> Iterator[ExpressionText]:
    from tasker.expressions.mapping import texts_of  # needed for templates with expressions only

    for inside, text in texts_of(value):
        yield ExpressionText((*path, *inside), text)


def _overridden_inputs(graph: DependencyGraph, document: Mapping[str, Any]) -> list[tuple[StepDraft, ExpressionText]]:
    overridden = []
    for environment in document.get("environments", {}):
        for path, override in entries(document, environment):
            step = graph.steps.get(override["name"])
            if step is not None and isinstance(override.get("inputs"), dict):
                overridden += [(step, text) for text in _texts((*path, "inputs"), override["inputs"])]
    return overridden


def check_text(step: StepDraft, written: ExpressionText, scope: CheckScope | None) -> Type | None:
    """Report the problems of a text; return the type of its expression if it has no problem and consists of one."""
    from tasker.expressions.mapping import Part, split_text  # needed for templates with expressions only
    from tasker.expressions.syntax import SYNTAX, ExpressionError, Problem

    text, place = written.text, step.reading.value(*written.path)
    parts: list[str | Part]
    if written.wants is not None:
        if text.lstrip().startswith("${"):
            hint = "write the expression without `${` and `}`"
            _report(step, Problem(SYNTAX, "`${` in a key whose value is an expression", 0, 2, hint), place, text, 0)
            return None
        parts = [Part(0, text)]
    else:
        try:
            parts = split_text(text)
        except ExpressionError as error:
            _report(step, error.problem, place, text, 0)
            return None
    whole: Type | None = None
    for part in parts:
        if isinstance(part, Part):
            type_, problems = _checked(part, written, len(parts) == 1, scope)
            for problem in problems:
                _report(step, problem, place, text, part.offset)
            whole = type_ if len(parts) == 1 and not problems else None
    return whole


def _checked(
    part: Part, written: ExpressionText, alone: bool, scope: CheckScope | None
) -> tuple[Type | None, list[Problem]]:
    """Return the type and the problems of one expression; `alone`: it is the whole text."""
    from tasker.expressions.check import Checker
    from tasker.expressions.syntax import TYPE, ExpressionError, Problem, parse

    try:
        node = parse(part.text)
    except ExpressionError as error:
        return None, [error.problem]
    if scope is None:
        return None, []
    checker = Checker(scope)
    type_ = checker.check(node)
    if checker.problems:
        return type_, checker.problems
    if written.wants not in (None, ANY_TYPE) and not type_.may_be(written.wants):
        return type_, [Problem(TYPE, f"{written.what}, got {type_}", node.offset, node.length, None)]
    if not alone and not type_.may_be("bool", "string", "int", "double", "number"):
        message = f"inside a text an expression is a scalar, got {type_}"
        hint = "let the text consist of the expression alone"
        return type_, [Problem(TYPE, message, node.offset, node.length, hint)]
    return type_, []


def _report(step: StepDraft, problem: Problem, place: Position, text: str, offset: int) -> None:
    where = position_inside(step.reading.report.text, place, text, offset + problem.offset, problem.length)
    step.report(CODES[problem.kind], problem.message, where, problem.hint)


def types_of_names(input_schema: Any) -> dict[str, Type]:
    """Return the types of the names that every expression may read."""
    from tasker.expressions.types import INT, STRING, object_of, type_of_schema

    task = object_of({"id": STRING, "correlation_id": STRING})
    return {"input": type_of_schema(input_schema), "task": task, "attempt": INT}


def type_of_result(type_: StepType | None, result_schema: Any, repeated: bool) -> Type:
    """Return the type of `steps.NAME`: the result of a step, or the list of the results of a batch_worker.

    `repeated`: the step has `for_each`, so that each instance stores a list.
    """
    from tasker.expressions.types import ANY, list_of, type_of_schema

    if repeated and type_ is not None and type_.is_pattern:
        return type_of_schema(result_schema).fields[RESULTS]
    result = ANY if type_ is None or type_.expands else type_of_schema(result_schema)
    return list_of(result) if type_ is not None and type_.is_pattern else result


def types_of_inputs(plan: Plan, step: StepPlan) -> dict[str, Type]:
    """Return the types of those inputs of a compiled step that consist of one expression."""
    from tasker.expressions.check import Checker
    from tasker.expressions.check_scope import CheckScope
    from tasker.expressions.mapping import Part, split_text
    from tasker.expressions.syntax import parse

    above = [plan.by_name[name] for name in plan.above.of(step.name)]
    results = {
        other.name: type_of_result(other.type, other.result_schema, other.for_each is not None) for other in above
    }
    scope = CheckScope(types_of_names(plan.input_schema), results, step=step.name)
    if step.for_each is not None:
        scope = with_item(scope, step.for_each.items, step.for_each.name)
    types = {}
    for name, value in (step.inputs or {}).items():
        parts = split_text(value) if isinstance(value, str) else ()
        if len(parts) == 1 and isinstance(parts[0], Part):
            types[name] = Checker(scope).check(parse(parts[0].text))
    return types


def with_item(scope: CheckScope, items: str, name: str) -> CheckScope:
    """Return the scope of the inputs of a step with `for_each`: it has the item and its position, too."""
    from tasker.expressions.check import Checker
    from tasker.expressions.syntax import ExpressionError, parse
    from tasker.expressions.types import ANY, INT, union

    try:
        type_ = Checker(scope).check(parse(items))
    except ExpressionError:
        type_ = ANY
    item = union(*(member.item or ANY if member.name == "list" else ANY for member in type_.alternatives))
    return replace(scope, names={**scope.names, name: item, "index": INT})


class _Scopes:
    """Scopes of the expressions of each step."""

    def __init__(self, graph: DependencyGraph, document: Mapping[str, Any], strict: bool) -> None:
        self._graph, self._above, self._strict = graph, Ancestry(graph.parents), strict
        self._names = types_of_names(document.get("input_schema"))
        self._results = {
            name: type_of_result(step.type, step.values.get("result_schema"), "for_each" in step.values)
            for name, step in graph.steps.items()
        }

    def know_result(self, step: StepDraft, types: Mapping[Path, Type], scope: CheckScope) -> None:
        """Note the type of a built-in step's result, for the steps below."""
        if "for_each" not in step.values and (type_ := type_of_builtin_result(step, types, scope)) is not None:
            self._results[step.name] = type_

    def of(self, step: StepDraft) -> CheckScope:
        from tasker.expressions.check_scope import CheckScope

        repeatable = {name: type_ for name, type_ in self._names.items() if name != "attempt"}
        scope = CheckScope(
            names=repeatable if self._is_evaluated_again(step) else self._names,
            steps=_ResultsAbove(step.name, self._graph, self._above, self._results)
            if not step.at_rest
            else {name: self._results[name] for name in self._graph.steps if not self._graph.is_late(name)},
            uncertain=frozenset(self._graph.steps) if step.at_rest else _Uncertain(step.name, self._graph),
            known=self._graph.steps,
            step=step.title,
            strict=self._strict,
        )
        if step.made_for is None and step.type is not None and (step.type.is_pattern or _evaluates_list(step)):
            each = step.values.get("for_each")
            return scope if each is None else with_item(scope, each["in"], each.get("as", "item"))
        return scope

    def _is_evaluated_again(self, step: StepDraft) -> bool:
        """Return whether the step's expressions have one value, whatever the attempt."""
        starts_children = step.type is not None and step.type.starts_children
        return step.made_for is not None or "rules" in step.values or starts_children


class _ResultsAbove(Mapping[str, Any]):
    """Types of the results of the steps above; ancestors are looked up only for a step that is no direct dependency."""

    def __init__(self, step: str, graph: DependencyGraph, above: Ancestry, results: Mapping[str, Type]) -> None:
        self._step, self._graph, self._above, self._results = step, graph, above, results

    def __contains__(self, name: object) -> bool:
        return name in self._graph.parents[self._step] or name in self._above.of(self._step)

    def __getitem__(self, name: str) -> Type:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._above.of(self._step))

    def __len__(self) -> int:
        return len(self._above.of(self._step))


class _Uncertain(Container[str]):
    """Steps above that may not exist, computed for the first one that is not static."""

    def __init__(self, step: str, graph: DependencyGraph) -> None:
        self._step, self._graph = step, graph

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if name in self._graph.may_be_missing and self._may_have_failed(name):
            return True
        return not self._always_exists(name) and name not in self._certain

    def _may_have_failed(self, name: str) -> bool:
        """Return whether the step runs although `name` failed."""
        word = WORDS[self._graph.steps[name].on_failure]
        return word.letter is not None and (word.dependents_run or self._step in self._graph.failure_branches)

    @cached_property
    def _certain(self) -> frozenset[str]:
        """Steps above that exist whenever the step does: behind a convergence, only those that always do."""
        graph, seen, waiting = self._graph, {self._step}, [self._step]
        while waiting:
            current = waiting.pop()
            may_lack = graph.is_from(current, Origin.CONVERGENCE)
            for parent in graph.parents[current]:
                if parent not in seen and not (may_lack and not self._always_exists(parent)):
                    seen.add(parent)
                    waiting.append(parent)
        return frozenset(seen)

    def _always_exists(self, name: str) -> bool:
        graph = self._graph
        if name in graph.may_be_missing:
            return False
        return graph.is_static(name) or graph.is_from(name, Origin.BATCH) or graph.is_from(name, Origin.CONVERGENCE)

"""Rules of expressions: each fits what the schemas say about its step's surroundings."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tasker.template.diagnostics import Position
from tasker.template.documents import Path, StepDraft
from tasker.template.graph import DependencyGraph
from tasker.template.plan import Ancestry
from tasker.template.rules.builtin import builtin_of, type_of_builtin_result
from tasker.template.rules.builtin import check_step as check_builtin
from tasker.template.step_types import Origin
from tasker.template.yaml.positions import position_inside

if TYPE_CHECKING:
    from tasker.expressions.check import CheckScope
    from tasker.expressions.syntax import Problem
    from tasker.expressions.types import Type
    from tasker.template.plan import Plan, StepPlan
    from tasker.template.step_types import StepType

CODES = {"syntax": "T090", "name": "T091", "type": "T092", "optional": "T093", "step": "T094", "branch": "T095"}


def expressions_fit(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check the expressions in the `inputs` of every step; what a step reads is checked if the graph has no cycle."""
    steps = {
        name: step
        for name, step in graph.steps.items()
        if isinstance(step.values.get("inputs"), dict) or builtin_of(step)
    }
    if not steps:
        return
    scopes = None if graph.cyclic else _Scopes(graph, document)
    for name in graph.order if scopes else graph.steps:  # the result of a built-in step has the types of its inputs
        if (step := steps.get(name)) is not None:
            scope = scopes.of(step) if scopes and name not in graph.tainted else None
            types = _check_step(step, scope)
            if builtin_of(step):
                check_builtin(step, types)
                if scopes and scope:
                    scopes.know_result(step, types, scope)


def _check_step(step: StepDraft, scope: CheckScope | None) -> dict[Path, Type]:
    """Report the problems of a step's expressions; return the types of the texts that consist of one without any."""
    from tasker.expressions.check import Checker  # needed for templates with expressions only
    from tasker.expressions.mapping import Part, split_text, texts_of
    from tasker.expressions.syntax import TYPE, ExpressionError, Problem, parse

    types: dict[Path, Type] = {}
    for path, text in texts_of(step.values.get("inputs")):
        place = step.reading.value(*step.path, "inputs", *path)
        try:
            parts = split_text(text)
        except ExpressionError as error:
            _report(step, error.problem, place, text, 0)
            continue
        for part in parts:
            if not isinstance(part, Part):
                continue
            try:
                node = parse(part.text)
            except ExpressionError as error:
                _report(step, error.problem, place, text, part.offset)
                continue
            if scope is None:
                continue
            checker = Checker(scope)
            type_ = checker.check(node)
            problems = checker.problems
            if len(parts) > 1 and not problems and not type_.may_be("bool", "string", "int", "double", "number"):
                message = f"inside a text an expression is a scalar, got {type_}"
                hint = "let the text consist of the expression alone"
                problems = [Problem(TYPE, message, node.offset, node.length, hint)]
            for problem in problems:
                _report(step, problem, place, text, part.offset)
            if len(parts) == 1 and not problems:
                types[path] = type_
    return types


def _report(step: StepDraft, problem: Problem, place: Position, text: str, offset: int) -> None:
    where = position_inside(step.reading.report.text, place, text, offset + problem.offset, problem.length)
    step.report(CODES[problem.kind], problem.message, where, problem.hint)


def types_of_names(input_schema: Any) -> dict[str, Type]:
    """Return the types of the names that every expression may read."""
    from tasker.expressions.types import INT, STRING, object_of, type_of_schema

    task = object_of({"id": STRING, "correlation_id": STRING})
    return {"input": type_of_schema(input_schema), "task": task, "attempt": INT}


def type_of_result(type_: StepType | None, result_schema: Any) -> Type:
    """Return the type of `steps.NAME`: the result of a step, or the list of the results of a batch_worker."""
    from tasker.expressions.types import ANY, list_of, type_of_schema

    result = ANY if type_ is None or type_.expands else type_of_schema(result_schema)
    return list_of(result) if type_ is not None and type_.is_pattern else result


def types_of_inputs(plan: Plan, step: StepPlan) -> dict[str, Type]:
    """Return the types of those inputs of a compiled step that consist of one expression."""
    from tasker.expressions.check import Checker, CheckScope
    from tasker.expressions.mapping import Part, split_text
    from tasker.expressions.syntax import parse

    above = plan.above.of(step.name)
    results = {name: type_of_result(plan.by_name[name].type, plan.by_name[name].result_schema) for name in above}
    scope = CheckScope(types_of_names(plan.input_schema), results, step=step.name)
    types = {}
    for name, value in (step.inputs or {}).items():
        parts = split_text(value) if isinstance(value, str) else ()
        if len(parts) == 1 and isinstance(parts[0], Part):
            types[name] = Checker(scope).check(parse(parts[0].text))
    return types


class _Scopes:
    """Scopes of the expressions of each step."""

    def __init__(self, graph: DependencyGraph, document: Mapping[str, Any]) -> None:
        self._graph, self._above = graph, Ancestry(graph.parents)
        self._names = types_of_names(document.get("input_schema"))
        self._results = {
            name: type_of_result(step.type, step.values.get("result_schema")) for name, step in graph.steps.items()
        }

    def know_result(self, step: StepDraft, types: Mapping[Path, Type], scope: CheckScope) -> None:
        """Note the type of a built-in step's result, for the steps below."""
        if (type_ := type_of_builtin_result(step, types, scope)) is not None:
            self._results[step.name] = type_

    def of(self, step: StepDraft) -> CheckScope:
        from tasker.expressions.check import CheckScope

        return CheckScope(
            names=self._names,
            steps=_ResultsAbove(step.name, self._graph, self._above, self._results),
            uncertain=_Uncertain(step.name, self._graph),
            known=self._graph.steps,
            step=step.name,
        )


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
        return isinstance(name, str) and not self._always_exists(name) and name not in self._certain

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
        return graph.is_static(name) or graph.is_from(name, Origin.BATCH) or graph.is_from(name, Origin.CONVERGENCE)

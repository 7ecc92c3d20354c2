"""Inputs and outputs of child tasks: the values of expressions of the step that starts them. Nothing here does IO."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from tasker.errors import InputInvalid, NotStorable, TaskerError
from tasker.expressions.evaluation import expression
from tasker.expressions.mapping import MappingFailure, computed, value_of
from tasker.expressions.values import Budget
from tasker.handlers.step_inputs import INPUT_MAPPING_FAILED, StepResults, scope_of
from tasker.json_values import encode
from tasker.redaction import replace_sensitive
from tasker.services.submission.check import require_fit
from tasker.template.plan import Plan, StepPlan
from tasker.template.rules.unread import paths_read


class Unstartable(TaskerError):
    """Failure of a step before it has started a child."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


class ChildOutputs:
    """Outputs of children of one template: the values of an expression, or the results of their last steps."""

    def __init__(self, plan: Plan, output: str | None) -> None:
        self.plan, self._output = plan, output

    @cached_property
    def _paths(self) -> Sequence[tuple[Any, ...]]:
        return () if self._output is None else [*paths_read(expression(self._output).node)]

    @property
    def reads_input(self) -> bool:
        """True if the input of the child is needed."""
        return any(path[0] == "input" for path in self._paths)

    @cached_property
    def ordinals(self) -> list[int]:
        """Ordinals of the steps whose results are needed."""
        if self._output is None:
            names = [name for name, below in self.plan.dependents.items() if not below]
        else:
            paths = [path for path in self._paths if path[0] == "steps"]
            every = any(len(path) < 2 for path in paths)
            names = [step.name for step in self.plan.steps if every or any(path[1] == step.name for path in paths)]
        return [self.plan.by_name[name].ordinal for name in names]

    def item(self, task_uuid: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the output of a child that succeeded as `tasker.gather_v1` takes it, or the error."""
        try:
            encoded = encode(self.value(task_uuid, given))
        except MappingFailure as error:
            return {"e": {"error_type": "output_failed", "message": str(error)[:2000], "state": "complete"}}
        except NotStorable as error:
            return {"e": {"error_type": error.error_type, "message": error.message[:2000], "state": "complete"}}
        return {"o": encoded, "b": encoded.size}

    def value(self, task_uuid: str, given: Mapping[str, Any]) -> Any:
        """Return the output of a child that succeeded. Raises `MappingFailure`.

        The schemas of the child hide nothing in its parent: what nobody asked for by `output` goes without values that
        they mark as sensitive.
        """
        if self._output is None:
            return {name: self._unmarked(name, result) for name, result in given["results"].items()}
        scope = {
            "input": given["context"] or {},
            "steps": StepResults(self.plan, given["results"]),
            "task": {"id": task_uuid},
        }
        return computed(f"${{{self._output}}}", ("output",))(scope, Budget())

    def _unmarked(self, name: str, result: Any) -> Any:
        step = self.plan.by_name.get(name)
        steps = [step] if step else [step for step in self.plan.steps if not step.static]  # an instance: as any of them
        for step in steps:
            result = replace_sensitive(step.result_schema, result, lambda *_: None)
        return result


def child_inputs(
    plan: Plan,
    step: StepPlan,
    child: Plan,
    context: Mapping[str, Any],
    results: Mapping[str, Any],
    *,
    task_uuid: str,
    correlation_id: str,
) -> Iterator[Mapping[str, Any]]:
    """Yield the input of each child, in the order of the list. `results` are those of the steps above, by name.

    Raises `Unstartable`.
    """
    scope = scope_of(plan, task_uuid, correlation_id, 1, context, results)
    del scope["attempt"]
    try:
        for index, item_scope in _item_scopes((step.wait or {})["for_each"], scope):
            input_ = context if step.inputs is None else plan.input_mappings[step.name].evaluate(item_scope)
            try:
                require_fit(child, input_)
            except InputInvalid as error:
                raise Unstartable("child_input_invalid", f"child {index}: {error.message}") from error
            yield input_
    except MappingFailure as error:
        raise Unstartable(INPUT_MAPPING_FAILED, str(error)) from error


def _item_scopes(each: Mapping[str, Any] | None, scope: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if each is None:
        yield 0, scope
        return
    for index, item in enumerate(value_of(each["in"], ("for_each",), list, scope, Budget())):
        yield index, {**scope, each["as"]: item, "index": index}


def encoded_input(index: int, input_: Mapping[str, Any], limit_bytes: int) -> Any:
    """Return the input of a child as JSON. Raises `Unstartable`."""
    try:
        return encode(input_, limit_bytes=limit_bytes)
    except NotStorable as error:
        raise Unstartable(error.error_type, f"the input of child {index}: {error.message}") from error


def tolerated(spec: Mapping[str, Any], total: int) -> int:
    """Return how many of so many children may fail."""
    share = spec["tolerated_percent"]
    return int(spec["tolerated"]) if share is None else int(total * Fraction(str(share)) / 100)

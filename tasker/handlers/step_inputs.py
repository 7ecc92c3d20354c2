"""Input of the handler of a step with `inputs`: its expressions, evaluated for one attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tasker.handlers.claims import Claim, Failure
from tasker.handlers.copies import CopyOnRead
from tasker.handlers.dependency_results import names_with_prefix
from tasker.template.generated_steps import RESULTS
from tasker.template.plan import Plan, StepPlan

if TYPE_CHECKING:
    from tasker.expressions.mapping import MappingFailure

INPUT_MAPPING_FAILED = "input_mapping_failed"


class StepResults(Mapping[str, Any]):
    """Results that expressions read as `steps.NAME`: as stored, uncopied; for a batch_worker the list of all."""

    def __init__(self, plan: Plan, results: Mapping[str, Any]) -> None:
        self._plan, self._results = plan, results
        self._read = results.original if isinstance(results, CopyOnRead) else results.__getitem__

    def __getitem__(self, name: str) -> Any:
        if self._is_pattern(name):
            results = [self._read(instance) for instance in self._instances(name)]
            return results if self._plan.by_name[name].for_each is None else _of_items(name, results)
        if name not in self._results:
            raise KeyError(f"the step `{name}` has no result")
        return self._read(name)

    def __contains__(self, name: object) -> bool:
        return name in self._results or (isinstance(name, str) and self._is_pattern(name))

    def _is_pattern(self, name: str) -> bool:
        step = self._plan.by_name.get(name)
        return step is not None and step.type.is_pattern

    def _instances(self, name: str) -> list[str]:
        names = names_with_prefix(self._results, f"{name}_")
        return [each for each in names if each not in self._plan.by_name and each[len(name) + 1 :].isdigit()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)


def _of_items(name: str, results: list[Any]) -> list[Any]:
    """Return the results of all items of a step with `for_each`, in the order of its list."""
    for result in results:
        if not isinstance(result, Mapping) or not isinstance(result.get(RESULTS), list):
            raise KeyError(f"the result of an instance of `{name}` has no list `{RESULTS}`")
    return [item for result in results for item in result[RESULTS]]


def evaluate_inputs(
    plan: Plan, step: StepPlan, claim: Claim, task_context: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inputs of a step that has some; values that no expression builds are those given, not copies.

    Raises `tasker.expressions.mapping.MappingFailure`.
    """
    scope = scope_of(plan, claim.task_uuid, claim.correlation_id, claim.attempt, task_context, results)
    return plan.input_mappings[step.name].evaluate(scope)


def scope_of(
    plan: Plan,
    task_uuid: str,
    correlation_id: str,
    attempt: int,
    task_context: Mapping[str, Any],
    results: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the values that expressions read by name."""
    return {
        "input": _originals(task_context),
        "steps": StepResults(plan, results),
        "task": {"id": task_uuid, "correlation_id": correlation_id},
        "attempt": attempt,
    }


def _originals(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values themselves where reading them would copy them."""
    if isinstance(values, CopyOnRead):
        return {name: values.original(name) for name in values}
    return dict(values)


def mapped_inputs(
    plan: Plan, step: StepPlan, claim: Claim, task_context: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Any] | Failure:
    """Return the inputs of a step that has some, or the permanent failure that names path, expression and place."""
    from tasker.expressions.mapping import MappingFailure  # needed for steps with expressions only

    try:
        return evaluate_inputs(plan, step, claim, task_context, results)
    except MappingFailure as error:
        return failure_of(error)


def failure_of(error: MappingFailure) -> Failure:
    """Return the permanent failure of an expression: the same attempt would fail in the same way."""
    metadata = {"path": error.path, "expression": error.expression, "column": error.offset + 1}
    return Failure(str(error), INPUT_MAPPING_FAILED, retryable=False, metadata=metadata)

"""Input of the aggregating step: the results of the steps above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tasker.handlers.dependency_results import names_with_prefix
from tasker.handlers.outcome_forms import BATCH_KEY
from tasker_core.models import DependencyResultsWrapper


@dataclass
class BatchAggregationScenario:
    """The batchable step's result and the workers' results by step name, without their envelopes."""

    is_no_batches: bool
    batchable_result: dict[str, Any]
    batch_results: dict[str, dict[str, Any]]
    worker_count: int

    @classmethod
    def detect(
        cls, dependency_results: dict[str, Any], batchable_step_name: str, batch_worker_prefix: str
    ) -> BatchAggregationScenario:
        """Return the scenario, with batches or without, by the result of the batchable step.

        Raises `ValueError` if that step has no result, or if it created batches and none has a result.
        """
        results = DependencyResultsWrapper.from_dict(dependency_results)
        analysis = results.get_results(batchable_step_name)
        if analysis is None:
            raise ValueError(f"the batchable step {batchable_step_name!r} has no result; there are: {results.keys()}")
        analysis = analysis if isinstance(analysis, dict) else {}
        outcome = analysis.get(BATCH_KEY)
        if isinstance(outcome, dict) and outcome.get("type") == "no_batches":
            return cls(True, analysis, {}, 0)
        workers = _workers(results, batch_worker_prefix)
        if not workers:
            raise ValueError(
                f"{batchable_step_name!r} did not answer no_batches, and no step whose name starts with "
                f"{batch_worker_prefix!r} has a result; there are: {results.keys()}"
            )
        return cls(False, analysis, workers, len(workers))

    def no_batches(self) -> bool:
        """Return True if no worker processed an item."""
        return self.is_no_batches


def _workers(results: DependencyResultsWrapper, prefix: str) -> dict[str, dict[str, Any]]:
    """Return the results in the order of the batches."""
    contents = {name: results.get_results(name) for name in names_with_prefix(dict.fromkeys(results), prefix)}
    return {name: value if isinstance(value, dict) else {} for name, value in contents.items()}

"""Statistics of a list of numbers. Every handler sees the results of all steps above it, not only of its parents."""

from __future__ import annotations

import math
from typing import Any

from tasker.step_handler import depends_on, inputs, step_handler

Result = dict[str, Any]


@step_handler("mixed_dag.init")
@inputs("numbers")
def init(numbers: list[int]) -> Result:
    return {"numbers": sorted(numbers), "count": len(numbers)}


@step_handler("mixed_dag.process_left")
@depends_on(start="dag_init")
async def process_left(start: Result) -> Result:
    return {"total": sum(start["numbers"])}


@step_handler("mixed_dag.process_right")
@depends_on(start="dag_init")
async def process_right(start: Result) -> Result:
    return {"total_of_squares": sum(n * n for n in start["numbers"])}


@step_handler("mixed_dag.validate")
@depends_on(start="dag_init", left="dag_process_left", right="dag_process_right")
def validate(start: Result, left: Result, right: Result) -> Result:
    """The sum of squares is never below (sum squared) / count."""
    return {"consistent": right["total_of_squares"] * start["count"] >= left["total"] ** 2}


@step_handler("mixed_dag.transform")
@depends_on(start="dag_init", left="dag_process_left")
def transform(start: Result, left: Result) -> Result:
    return {"mean": left["total"] / start["count"]}


@step_handler("mixed_dag.analyze")
@depends_on(start="dag_init", right="dag_process_right")
def analyze(start: Result, right: Result) -> Result:
    return {"root_mean_square": round(math.sqrt(right["total_of_squares"] / start["count"]), 6)}


@step_handler("mixed_dag.finalize")
@depends_on(start="dag_init", checks="dag_validate", left="dag_transform", right="dag_analyze")
def finalize(start: Result, checks: Result, left: Result, right: Result) -> Result:
    return {"count": start["count"], **checks, **left, **right}

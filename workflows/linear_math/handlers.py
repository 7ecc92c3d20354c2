"""Arithmetic on one number: what each step works with comes from the template's `initialization`."""

from __future__ import annotations

from tasker.errors import ValidationError
from tasker.step_handler import depends_on, inputs, step_handler
from tasker.types import StepContext

Result = dict[str, float]


@step_handler("linear.add")
@inputs("value")
def add(value: float, context: StepContext) -> Result:
    return {"value": value + context.get_config("amount")}


@step_handler("linear.multiply")
@depends_on(previous="mathematical_add")
def multiply(previous: Result, context: StepContext) -> Result:
    return {"value": previous["value"] * context.get_config("factor")}


@step_handler("linear.subtract")
@depends_on(previous="mathematical_multiply")
def subtract(previous: Result, context: StepContext) -> Result:
    return {"value": previous["value"] - context.get_config("amount")}


@step_handler("linear.divide")
@depends_on(previous="mathematical_subtract")
def divide(previous: Result, context: StepContext) -> Result:
    divisor = context.get_input_or("divisor", context.get_config("divisor"))
    if divisor == 0:
        raise ValidationError("cannot divide by zero: send another `divisor`", error_code="division_by_zero")
    return {"value": previous["value"] / divisor}

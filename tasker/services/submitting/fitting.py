"""Whether the context of a task fits the template's `input_schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.contracts.plan import Plan
from tasker.errors import InputInvalid
from tasker.lifecycle.sensitive import without_secrets
from tasker.template.schema.check import Problem, check_input


def input_problems(plan: Plan, context: Any) -> list[Problem]:
    """As `check_input`, in words that hold nothing sensitive."""
    schema = plan.input_schema or {}
    return [Problem(each.path, without_secrets(each.message, schema, context)) for each in check_input(plan, context)]


def require_fit(plan: Plan, context: Mapping[str, Any]) -> None:
    """Raises `InputInvalid` with every problem."""
    if problems := input_problems(plan, context):
        lines = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
        raise InputInvalid(
            f"the input does not fit the template {plan.namespace}/{plan.name}:\n{lines}", problems=problems
        )

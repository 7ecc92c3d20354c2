"""One class for seven steps: the template says with `from` whose result a step squares."""

from __future__ import annotations

import math

from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult


class SquareHandler(StepHandler):
    """Squares the result of the step named by `from`, or the input when the template names none."""

    handler_name = "tree.square"

    def call(self, context: StepContext) -> StepHandlerResult:
        source = context.get_config("from")
        value = context.get_dependency_field(source, "value") if source else context.get_input("number")
        return self.success({"value": value**2})


class MultiplyLeavesHandler(StepHandler):
    """Multiplies every leaf; results are found by the prefix of their steps' names."""

    handler_name = "tree.multiply_leaves"

    def call(self, context: StepContext) -> StepHandlerResult:
        leaves = context.get_all_dependency_results("tree_leaf_")
        return self.success({"value": math.prod(leaf["value"] for leaf in leaves), "leaves": len(leaves)})

"""Values of expressions: their kinds and equality, the budget of an evaluation, and its errors."""

from __future__ import annotations

from typing import Any

from tasker.expressions.syntax import LEAST, MOST, Node

BUDGET = 500_000
"""Number of nodes that one evaluation may visit inside loops, and of values that it may compare or build."""
CHARACTERS = 32
"""Characters of a built text that cost as much as one value."""
ABSENT: Any = object()
"""Value of an optional field that does not exist."""


class EvaluationError(Exception):
    """Evaluation without a value; `offset` and `length` say at which part of the expression."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.message, self.offset, self.length = message, node.offset, node.length


class Exhausted(EvaluationError):
    """The budget is used up; unlike other errors, `&&` and `||` do not absorb this one."""


class Budget:
    """Work that an evaluation may still do."""

    __slots__ = ("left",)

    def __init__(self, left: int = BUDGET) -> None:
        self.left = left

    def spend(self, amount: int, node: Node) -> None:
        """Charge work. Raises `EvaluationError`."""
        self.left -= amount
        if self.left < 0:
            raise Exhausted("the expression does too much work; write a handler for this", node)


def kind_of(value: Any) -> str:
    """Return the name of a value's type for messages."""
    return KINDS.get(type(value), type(value).__name__)


KINDS = {
    type(None): "null",
    bool: "a bool",
    int: "an int",
    float: "a double",
    str: "a string",
    list: "a list",
    dict: "a map",
}


def in_range(value: int, node: Node) -> int:
    if not LEAST <= value <= MOST:
        raise EvaluationError("the number does not fit into 64 bits", node)
    return value


def truth(value: Any, node: Node) -> bool:
    if type(value) is bool:
        return value
    raise EvaluationError(f"expected a bool, got {kind_of(value)}", node)


NUMBERS = frozenset({int, float})
TEXTS = frozenset({str})
BOOLS = frozenset({bool})


def alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two numbers as they are compared: an int with a double as doubles, like Google's implementation."""
    if type(left) is type(right):
        return left, right
    try:
        return float(left), float(right)
    except OverflowError:
        return left, right


def equal(left: Any, right: Any, budget: Budget, node: Node) -> bool:
    kind, other = type(left), type(right)
    if kind in NUMBERS and other in NUMBERS:
        left, right = alike(left, right)
        return bool(left == right)
    if kind is not other:
        return False
    if kind is str:
        return bool(left == right)
    if kind is list:
        budget.spend(1 + len(left), node)
        return len(left) == len(right) and all(equal(a, b, budget, node) for a, b in zip(left, right, strict=True))
    if kind is dict:
        budget.spend(1 + len(left), node)
        return left.keys() == right.keys() and all(equal(left[key], right[key], budget, node) for key in left)
    return bool(left == right)

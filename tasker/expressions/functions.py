"""Operators, functions, methods and loops of expressions, apart from the evaluation of their operands."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from tasker.expressions.syntax import LEAST, MOST, Node
from tasker.expressions.values import (
    BOOLS,
    CHARACTERS,
    NUMBERS,
    TEXTS,
    Budget,
    EvaluationError,
    Exhausted,
    equal,
    in_range,
    kind_of,
    truth,
)


def _size(value: Any, node: Node) -> int:
    if type(value) in (str, list, dict):
        return len(value)
    raise EvaluationError(f"{kind_of(value)} has no size", node)


Answer = Callable[[Any], Any]

_INT = re.compile(r"-?[0-9]{1,19}")
_DOUBLE = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def _int(value: Any, node: Node) -> int:
    if type(value) is int:
        return value
    if type(value) is str and _INT.fullmatch(value):
        return in_range(int(value), node)
    if type(value) is float and math.isfinite(value) and LEAST < value < MOST:
        return int(value)
    raise EvaluationError(f"not an integer: {_excerpt(value)}", node)


def _double(value: Any, node: Node) -> float:
    if type(value) in NUMBERS or (type(value) is str and len(value) < 400 and _DOUBLE.fullmatch(value)):
        try:
            return float(value)
        except OverflowError:
            pass
    raise EvaluationError(f"not a number: {_excerpt(value)}", node)


def _excerpt(value: Any) -> str:
    return f"`{value[:40]}`" if type(value) is str else kind_of(value)


def as_text(value: Any, node: Node) -> str:
    """Return a scalar as text. Raises `EvaluationError` for null, lists and maps."""
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value) if abs(value) < 10**400 else _too_large(node)
    if type(value) is float:
        return repr(value).removesuffix(".0")
    raise EvaluationError(f"expected a string, a number or a bool, got {kind_of(value)}", node)


def _too_large(node: Node) -> str:
    raise EvaluationError("the number is too large", node)


def _bool(value: Any, node: Node) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str and value in ("true", "false"):
        return value == "true"
    raise EvaluationError(f"not a bool: {_excerpt(value)}", node)


FUNCTIONS: Mapping[str, Callable[[Any, Node], Any]] = {
    "size": _size,
    "int": _int,
    "double": _double,
    "string": as_text,
    "bool": _bool,
    "dyn": lambda value, node: value,
}


class Call:
    """The call of a method: where it is, and what it may spend."""

    __slots__ = ("budget", "node")

    def __init__(self, node: Node, budget: Budget) -> None:
        self.node, self.budget = node, budget

    def text(self, text: str) -> str:
        self.budget.spend(len(text) // CHARACTERS, self.node)
        return text

    def fail(self, message: str) -> EvaluationError:
        return EvaluationError(message, self.node)


def _split(call: Call, text: str, separator: str) -> list[str]:
    call.budget.spend((len(text) if separator == "" else text.count(separator)) + len(text) // CHARACTERS, call.node)
    return list(text) if separator == "" else text.split(separator)


def _replace(call: Call, text: str, old: str, new: str) -> str:
    count = len(text) + 1 if old == "" else text.count(old)
    call.budget.spend((len(text) + count * (1 + len(new))) // CHARACTERS, call.node)
    return text.replace(old, new)


def _join(call: Call, items: list[Any], separator: str = "") -> str:
    call.budget.spend(len(items), call.node)
    wrong = next((item for item in items if type(item) is not str), None)
    if wrong is not None or None in items:
        raise call.fail(f"`.join()` expects strings, got {kind_of(wrong)}; write .map(x, string(x)).join(...)")
    call.budget.spend((sum(map(len, items)) + len(separator) * len(items)) // CHARACTERS, call.node)
    return separator.join(items)


def _sum(call: Call, items: list[Any]) -> Any:
    call.budget.spend(len(items), call.node)
    if wrong := [item for item in items if type(item) not in NUMBERS]:
        raise call.fail(f"`.sum()` expects numbers, got {kind_of(wrong[0])}")
    try:
        total = sum(items)
    except OverflowError:
        raise call.fail("the number is too large") from None
    return in_range(total, call.node) if type(total) is int else total


def _comparable(call: Call, items: list[Any]) -> list[Any]:
    call.budget.spend(len(items), call.node)
    kinds = {type(item) for item in items}
    if kinds <= NUMBERS or kinds <= TEXTS or kinds <= BOOLS:
        return items
    raise call.fail(f"`.{call.node.value}()` expects only numbers, only strings or only bools")


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[Call, list[Any]], Any]:
    def find(call: Call, items: list[Any]) -> Any:
        if not items:
            raise call.fail(f"`.{call.node.value}()` of an empty list")
        return choose(_comparable(call, items))

    return find


def _sort(call: Call, items: list[Any]) -> list[Any]:
    call.budget.spend(len(items) * len(items).bit_length(), call.node)
    return sorted(_comparable(call, items))


def _distinct(call: Call, items: list[Any]) -> list[Any]:
    values: list[Any] = []
    for item in items:
        call.budget.spend(1 + len(values), call.node)
        if not any(equal(item, value, call.budget, call.node) for value in values):
            values.append(item)
    return values


def _index_of(call: Call, items: list[Any], wanted: Any) -> int:
    call.budget.spend(len(items), call.node)
    places = (place for place, item in enumerate(items) if equal(item, wanted, call.budget, call.node))
    return next(places, -1)


_LOWER = {upper: upper + 32 for upper in range(65, 91)}
_UPPER = {lower: lower - 32 for lower in range(97, 123)}
METHODS: Mapping[str, tuple[type | None, tuple[type | None, ...], Callable[..., Any]]] = {
    "size": (None, (), lambda call, value: _size(value, call.node)),
    "startsWith": (str, (str,), lambda call, text, part: text.startswith(part)),
    "endsWith": (str, (str,), lambda call, text, part: text.endswith(part)),
    "contains": (str, (str,), lambda call, text, part: part in call.text(text)),
    "lowerAscii": (str, (), lambda call, text: call.text(text).translate(_LOWER)),
    "upperAscii": (str, (), lambda call, text: call.text(text).translate(_UPPER)),
    "trim": (str, (), lambda call, text: call.text(text).strip()),
    "split": (str, (str,), _split),
    "replace": (str, (str, str), _replace),
    "join": (list, (str,), _join),
    "sum": (list, (), _sum),
    "min": (list, (), _extreme(min)),
    "max": (list, (), _extreme(max)),
    "sort": (list, (), _sort),
    "distinct": (list, (), _distinct),
    "indexOf": (list, (None,), _index_of),
}
"""Methods by name: the type that has it, the types of its arguments (None: any), and its code."""


ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _quotient(first: int, second: int) -> int:
    """Divide towards zero, as CEL does."""
    value = abs(first) // abs(second)
    return value if (first < 0) == (second < 0) else -value


def _divided(first: float, second: float) -> float:
    """Divide as IEEE 754 does."""
    if second != 0:
        return first / second
    if first == 0 or math.isnan(first):
        return math.nan
    return math.copysign(math.inf, first) * math.copysign(1, second)


INTEGERS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda first, second: first - second * _quotient(first, second),
}


DOUBLES: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}


def _quantified(stop: bool) -> Callable[[Answer, list[Any], Node], bool]:
    """Return `exists` (stop at true) or `all` (stop at false): an error counts only if no item decides."""

    def loop(answer: Answer, items: list[Any], node: Node) -> bool:
        problem: EvaluationError | None = None
        for item in items:
            try:
                if truth(answer(item), node) is stop:
                    return stop
            except Exhausted:
                raise
            except EvaluationError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return not stop

    return loop


def _filter(answer: Answer, items: list[Any], node: Node) -> list[Any]:
    return [item for item in items if truth(answer(item), node)]


LOOPS: Mapping[str, Callable[[Answer, list[Any], Node], Any]] = {
    "all": _quantified(False),
    "exists": _quantified(True),
    "exists_one": lambda answer, items, node: len(_filter(answer, items, node)) == 1,
    "filter": _filter,
    "map": lambda answer, items, node: [answer(item) for item in items],
}

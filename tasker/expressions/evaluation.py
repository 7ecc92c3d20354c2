"""Evaluation of expressions over plain data: nothing is copied, and what is not read is not touched.

A tree becomes a closure. Loops, comparisons of collections and built texts are charged to a budget, so that every
evaluation ends with a value or an `EvaluationError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tasker.expressions.functions import DOUBLES, FUNCTIONS, INTEGERS, LOOPS, METHODS, ORDER, Call
from tasker.expressions.syntax import Node, is_optional, parse
from tasker.expressions.values import (
    ABSENT,
    BOOLS,
    CHARACTERS,
    KINDS,
    NUMBERS,
    TEXTS,
    Budget,
    EvaluationError,
    Exhausted,
    alike,
    equal,
    in_range,
    kind_of,
    truth,
)

Scope = dict[Any, Any]
"""Values by name. `steps` maps names to results; `None` is the key of the budget."""
Evaluate = Callable[[Scope], Any]


class Expression:
    """Parsed expression, ready to be evaluated. Raises `ExpressionError`."""

    __slots__ = ("_evaluate", "_is_path", "node", "text")

    def __init__(self, text: str) -> None:
        self.text, self.node = text, parse(text)
        self._evaluate, self._is_path = _closure(self.node), _is_path(self.node)

    def evaluate(self, scope: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Return the value in a scope, which JSON can hold. Raises `EvaluationError`."""
        spent = budget or Budget()
        try:
            value = self._evaluate({**scope, None: spent})
            if not self._is_path and type(value) in (list, dict, float):
                _check_storable(value, spent, self.node)
        except RecursionError:
            raise EvaluationError("the data is nested too deeply", self.node) from None
        return value


@lru_cache(maxsize=4096)
def expression(text: str) -> Expression:
    """Return the expression of a text; a text is parsed once. Raises `ExpressionError`."""
    return Expression(text)


def _is_path(node: Node) -> bool:
    while node.kind in ("field", "index"):
        node = node.args[0]
    return node.kind == "name"


def _check_storable(value: Any, budget: Budget, root: Node) -> None:
    """Check that JSON can hold a built value. Raises `EvaluationError`."""
    stack = [value]
    while stack:
        item = stack.pop()
        budget.spend(1, root)
        if type(item) is dict:
            stack += item.values()
        elif type(item) is list:
            stack += item
        elif type(item) is float and not math.isfinite(item):
            raise EvaluationError(f"the value is {item}, which JSON cannot hold", root)


def _closure(node: Node) -> Evaluate:
    return _MAKERS[node.kind](node)


def _constant(node: Node) -> Evaluate:
    value = node.value
    return lambda scope: value


def _name(node: Node) -> Evaluate:
    name = node.value

    def read(scope: Scope) -> Any:
        try:
            return scope[name]
        except KeyError:
            raise EvaluationError(f"unknown name `{name}`", node) from None

    return read


def _get(owner: Any, key: Any, node: Node) -> Any:
    kind = type(owner)
    if kind is dict:
        try:
            return owner[key]
        except (KeyError, TypeError):
            raise EvaluationError(f"there is no {_shown(key)}", node) from None
    if kind is list:
        if type(key) is float and key.is_integer():
            key = int(key)
        if type(key) is not int:
            raise EvaluationError(f"a list is read by a position, got {_shown(key)}", node)
        if 0 <= key < len(owner):
            return owner[key]
        raise EvaluationError(f"there is no position {key} in a list of {len(owner)}", node)
    if owner is ABSENT:
        return ABSENT
    if isinstance(owner, Mapping):  # results of steps, which are decoded when they are read
        try:
            return owner[key]
        except KeyError as error:
            raise EvaluationError(error.args[0] if error.args else f"there is no {_shown(key)}", node) from None
    raise EvaluationError(f"{kind_of(owner)} has no field {_shown(key)}", node)


def _shown(key: Any) -> str:
    return f"`{key}`" if type(key) is str else str(key)


def _field(node: Node) -> Evaluate:
    owner, name = _closure(node.args[0]), node.value

    def read(scope: Scope) -> Any:
        value = owner(scope)
        try:
            return value[name]
        except (KeyError, TypeError, IndexError):
            return _get(value, name, node)

    return read


def _optional(node: Node) -> Evaluate:
    owner, name = _closure(node.args[0]), node.value

    def read(scope: Scope) -> Any:
        value = owner(scope)
        if value is None or value is ABSENT:
            return ABSENT
        if not isinstance(value, Mapping):
            raise EvaluationError(f"{kind_of(value)} has no fields", node)
        return value.get(name, ABSENT)

    return read


def _index(node: Node) -> Evaluate:
    owner, key = map(_closure, node.args)
    return lambda scope: _get(owner(scope), key(scope), node)


def _list(node: Node) -> Evaluate:
    items = [*map(_closure, node.args)]
    return lambda scope: [item(scope) for item in items]


def _map(node: Node) -> Evaluate:
    closures = [*map(_closure, node.args)]
    pairs = [*zip(node.args[::2], closures[::2], closures[1::2], strict=True)]

    def build(scope: Scope) -> Any:
        value: dict[str, Any] = {}
        for place, key_of, value_of in pairs:
            key = key_of(scope)
            if type(key) is not str:
                raise EvaluationError(f"expected a string as the key of a map, got {kind_of(key)}", place)
            if key in value:
                raise EvaluationError(f"the key `{key}` stands in the map twice", place)
            value[key] = value_of(scope)
        return value

    return build


def _unary(node: Node) -> Evaluate:
    operand = _closure(node.args[0])

    def negate(scope: Scope) -> Any:
        value = operand(scope)
        if type(value) is float:
            return -value
        if type(value) is not int:
            raise EvaluationError(f"`-` expects a number, got {kind_of(value)}", node)
        return in_range(-value, node)

    return negate if node.value == "-" else lambda scope: not truth(operand(scope), node)


def _operation(node: Node) -> Evaluate:
    left, right = map(_closure, node.args)
    sign = node.value
    if sign in ("&&", "||"):
        return _logical(node, left, right, stop=sign == "||")
    if sign == "==":
        return lambda scope: equal(left(scope), right(scope), scope[None], node)
    if sign == "!=":
        return lambda scope: not equal(left(scope), right(scope), scope[None], node)
    if sign == "in":
        return _membership(node, left, right)
    if sign in ORDER:
        return _comparison(node, left, right)
    return _arithmetic(node, left, right)


def _logical(node: Node, left: Evaluate, right: Evaluate, stop: bool) -> Evaluate:
    """Return the operator as CEL defines it: an error of one side does not count if the other side decides."""
    first, second = node.args

    def decide(scope: Scope) -> bool:
        try:
            value = truth(left(scope), first)
        except Exhausted:
            raise
        except EvaluationError:
            if truth(right(scope), second) is stop:
                return stop
            raise
        return value if value is stop else truth(right(scope), second)

    return decide


def _membership(node: Node, left: Evaluate, right: Evaluate) -> Evaluate:
    def contained(scope: Scope) -> bool:
        value, group = left(scope), right(scope)
        if type(group) is list:
            budget: Budget = scope[None]
            budget.spend(len(group), node)
            return any(equal(value, item, budget, node) for item in group)
        if type(group) is dict:
            return type(value) is str and value in group
        raise EvaluationError(f"`in` expects a list or a map, got {kind_of(group)}", node)

    return contained


def _comparison(node: Node, left: Evaluate, right: Evaluate) -> Evaluate:
    compare = ORDER[node.value]

    def ordered(scope: Scope) -> bool:
        first, second = left(scope), right(scope)
        kinds = {type(first), type(second)}
        if kinds <= NUMBERS or kinds <= TEXTS or kinds <= BOOLS:
            return bool(compare(*alike(first, second)))
        raise EvaluationError(f"`{node.value}` cannot compare {kind_of(first)} with {kind_of(second)}", node)

    return ordered


def _arithmetic(node: Node, left: Evaluate, right: Evaluate) -> Evaluate:
    sign = node.value
    integers, doubles = INTEGERS[sign], DOUBLES.get(sign)

    def compute(scope: Scope) -> Any:
        first, second = left(scope), right(scope)
        kind, other = type(first), type(second)
        try:
            if kind is int and other is int:
                return in_range(integers(first, second), node)
            if doubles is not None and kind in NUMBERS and other in NUMBERS:
                return doubles(float(first), float(second))
        except ZeroDivisionError:
            raise EvaluationError("division by zero", node) from None
        except OverflowError:
            raise EvaluationError("the number is too large", node) from None
        if sign == "+" and kind is other and (kind is str or kind is list):
            size = len(first) + len(second)
            scope[None].spend(size // CHARACTERS if kind is str else size, node)
            return first + second
        raise EvaluationError(f"`{sign}` cannot take {kind_of(first)} and {kind_of(second)}", node)

    return compute


def _choice(node: Node) -> Evaluate:
    condition, yes, no = map(_closure, node.args)
    place = node.args[0]
    return lambda scope: yes(scope) if truth(condition(scope), place) else no(scope)


def _function(node: Node) -> Evaluate:
    if node.value == "has" and len(node.args) == 1 and node.args[0].kind in ("field", "index"):
        return _has(node.args[0])
    function = FUNCTIONS.get(node.value)
    if function is None or len(node.args) != 1:
        return _unknown(node, f"unknown function `{node.value}`")
    argument = _closure(node.args[0])
    return lambda scope: function(argument(scope), node)


def _unknown(node: Node, message: str) -> Evaluate:
    def fail(scope: Scope) -> Any:
        raise EvaluationError(message, node)

    return fail


def _has(path: Node) -> Evaluate:
    owner, key = _closure(path.args[0]), path.key

    def exists(scope: Scope) -> bool:
        value = owner(scope)
        if isinstance(value, Mapping):
            return key in value
        raise EvaluationError(f"has() expects a field of a map, got {kind_of(value)}", path)

    return exists


def _method(node: Node) -> Evaluate:
    if node.is_macro:
        return _macro(node)
    owner, arguments = _closure(node.args[0]), [*map(_closure, node.args[1:])]
    if node.value == "orValue" and len(arguments) == 1 and is_optional(node.args[0]):
        (default,) = arguments

        def chosen(scope: Scope) -> Any:
            value = owner(scope)
            return default(scope) if value is ABSENT else value

        return chosen
    known = METHODS.get(node.value)
    if known is None:
        return _unknown(node, f"unknown method `.{node.value}()`")
    kind, parameters, function = known
    if len(parameters) != len(arguments):
        return _unknown(node, f"`.{node.value}()` takes {len(parameters)} arguments, got {len(arguments)}")

    def call(scope: Scope) -> Any:
        value, given = owner(scope), [argument(scope) for argument in arguments]
        if kind is not None and type(value) is not kind:
            raise EvaluationError(f"`.{node.value}()` belongs to {KINDS[kind]}, got {kind_of(value)}", node)
        for item, expected, place in zip(given, parameters, node.args[1:], strict=True):
            if expected is not None and type(item) is not expected:
                raise EvaluationError(f"`.{node.value}()` takes {KINDS[expected]}, got {kind_of(item)}", place)
        return function(Call(node, scope[None]), value, *given)

    return call


def _macro(node: Node) -> Evaluate:
    """Return a loop over a list, or over the keys of a map; each item costs as many visits as its body has nodes."""
    kind, name = node.value, node.args[1].value
    items_of, closures = _closure(node.args[0]), [*map(_closure, node.args[2:])]
    loop = LOOPS[kind]

    def iterate(scope: Scope) -> Any:
        items = items_of(scope)
        if type(items) is not list:
            if type(items) is not dict:
                raise EvaluationError(f"`.{kind}()` expects a list or a map, got {kind_of(items)}", node)
            items = list(items)
        inner, budget = dict(scope), scope[None]

        def of_each(number: int) -> Evaluate:
            closure, place = closures[number], node.args[2 + number]

            def answer(item: Any) -> Any:
                budget.spend(1 + place.size, node)
                inner[name] = item
                return closure(inner)

            return answer

        if len(closures) == 2:  # list.map(item, condition, value)
            items = LOOPS["filter"](of_each(0), items, node.args[2])
        return loop(of_each(-1 + len(closures)), items, node.args[-1])

    return iterate


_MAKERS: Mapping[str, Callable[[Node], Evaluate]] = {
    "constant": _constant,
    "name": _name,
    "field": _field,
    "optional": _optional,
    "index": _index,
    "list": _list,
    "map": _map,
    "unary": _unary,
    "operation": _operation,
    "choice": _choice,
    "function": _function,
    "method": _method,
}

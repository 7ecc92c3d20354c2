"""Evaluation of expressions over plain data: nothing is copied, and what is not read is not touched.

A tree becomes a closure. Loops, comparisons of collections and built texts are charged to a budget, so that every
evaluation ends with a value or an `EvaluationError`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tasker.expressions.syntax import LEAST, MOST, Node, is_optional, parse

BUDGET = 500_000
"""Number of nodes that one evaluation may visit inside loops, and of values that it may compare or build."""
CHARACTERS = 32
"""Characters of a built text that cost as much as one value."""

Scope = dict[Any, Any]
"""Values by name. `steps` maps names to results; `None` is the key of the budget."""
Evaluate = Callable[[Scope], Any]

ABSENT: Any = object()
"""Value of an optional field that does not exist."""


class EvaluationError(Exception):
    """Evaluation without a value; `offset` and `length` say at which part of the expression."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.message, self.offset, self.length = message, node.offset, node.length


class _Exhausted(EvaluationError):
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
            raise _Exhausted("the expression does too much work; write a handler for this", node)


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


def kind_of(value: Any) -> str:
    """Return the name of a value's type for messages."""
    return _KINDS.get(type(value), type(value).__name__)


_KINDS = {
    type(None): "null",
    bool: "a bool",
    int: "an int",
    float: "a double",
    str: "a string",
    list: "a list",
    dict: "a map",
}


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
        return _in_range(-value, node)

    return negate if node.value == "-" else lambda scope: not _truth(operand(scope), node)


def _in_range(value: int, node: Node) -> int:
    if not LEAST <= value <= MOST:
        raise EvaluationError("the number does not fit into 64 bits", node)
    return value


def _truth(value: Any, node: Node) -> bool:
    if type(value) is bool:
        return value
    raise EvaluationError(f"expected a bool, got {kind_of(value)}", node)


_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NUMBERS = frozenset({int, float})
_TEXTUAL = frozenset({str})
_BOOLS = frozenset({bool})


def _operation(node: Node) -> Evaluate:
    left, right = map(_closure, node.args)
    sign = node.value
    if sign in ("&&", "||"):
        return _logical(node, left, right, stop=sign == "||")
    if sign == "==":
        return lambda scope: _equal(left(scope), right(scope), scope[None], node)
    if sign == "!=":
        return lambda scope: not _equal(left(scope), right(scope), scope[None], node)
    if sign == "in":
        return _membership(node, left, right)
    if sign in _ORDER:
        return _comparison(node, left, right)
    return _arithmetic(node, left, right)


def _logical(node: Node, left: Evaluate, right: Evaluate, stop: bool) -> Evaluate:
    """Return the operator as CEL defines it: an error of one side does not count if the other side decides."""
    first, second = node.args

    def decide(scope: Scope) -> bool:
        try:
            value = _truth(left(scope), first)
        except _Exhausted:
            raise
        except EvaluationError:
            if _truth(right(scope), second) is stop:
                return stop
            raise
        return value if value is stop else _truth(right(scope), second)

    return decide


def _equal(left: Any, right: Any, budget: Budget, node: Node) -> bool:
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        return bool(left == right)
    if kind is not other:
        return False
    if kind is str:
        return bool(left == right)
    if kind is list:
        budget.spend(1 + len(left), node)
        return len(left) == len(right) and all(_equal(a, b, budget, node) for a, b in zip(left, right, strict=True))
    if kind is dict:
        budget.spend(1 + len(left), node)
        return left.keys() == right.keys() and all(_equal(left[key], right[key], budget, node) for key in left)
    return bool(left == right)


def _membership(node: Node, left: Evaluate, right: Evaluate) -> Evaluate:
    def contained(scope: Scope) -> bool:
        value, group = left(scope), right(scope)
        if type(group) is list:
            budget: Budget = scope[None]
            budget.spend(len(group), node)
            return any(_equal(value, item, budget, node) for item in group)
        if type(group) is dict:
            return type(value) is str and value in group
        raise EvaluationError(f"`in` expects a list or a map, got {kind_of(group)}", node)

    return contained


def _comparison(node: Node, left: Evaluate, right: Evaluate) -> Evaluate:
    compare = _ORDER[node.value]

    def ordered(scope: Scope) -> bool:
        first, second = left(scope), right(scope)
        kinds = {type(first), type(second)}
        if kinds <= _NUMBERS or kinds <= _TEXTUAL or kinds <= _BOOLS:
            return bool(compare(first, second))
        raise EvaluationError(f"`{node.value}` cannot compare {kind_of(first)} with {kind_of(second)}", node)

    return ordered


def _arithmetic(node: Node, left: Evaluate, right: Evaluate) -> Evaluate:
    sign = node.value
    integers, doubles = _INTEGERS[sign], _DOUBLES.get(sign)

    def compute(scope: Scope) -> Any:
        first, second = left(scope), right(scope)
        kind, other = type(first), type(second)
        try:
            if kind is int and other is int:
                return _in_range(integers(first, second), node)
            if doubles is not None and kind in _NUMBERS and other in _NUMBERS:
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


_INTEGERS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda first, second: first - second * _quotient(first, second),
}
_DOUBLES: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}


def _choice(node: Node) -> Evaluate:
    condition, yes, no = map(_closure, node.args)
    place = node.args[0]
    return lambda scope: yes(scope) if _truth(condition(scope), place) else no(scope)


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


def _size(value: Any, node: Node) -> int:
    if type(value) in (str, list, dict):
        return len(value)
    raise EvaluationError(f"{kind_of(value)} has no size", node)


_INT = re.compile(r"-?[0-9]{1,19}")
_DOUBLE = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def _int(value: Any, node: Node) -> int:
    if type(value) is int:
        return value
    if type(value) is str and _INT.fullmatch(value):
        return _in_range(int(value), node)
    if type(value) is float and math.isfinite(value) and LEAST < value < MOST:
        return int(value)
    raise EvaluationError(f"not an integer: {_excerpt(value)}", node)


def _double(value: Any, node: Node) -> float:
    if type(value) in _NUMBERS or (type(value) is str and len(value) < 400 and _DOUBLE.fullmatch(value)):
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
            raise EvaluationError(f"`.{node.value}()` belongs to {_KINDS[kind]}, got {kind_of(value)}", node)
        for item, expected, place in zip(given, parameters, node.args[1:], strict=True):
            if expected is not None and type(item) is not expected:
                raise EvaluationError(f"`.{node.value}()` takes {_KINDS[expected]}, got {kind_of(item)}", place)
        return function(_Call(node, scope[None]), value, *given)

    return call


class _Call:
    """The call of a method: where it is, and what it may spend."""

    __slots__ = ("budget", "node")

    def __init__(self, node: Node, budget: Budget) -> None:
        self.node, self.budget = node, budget

    def text(self, text: str) -> str:
        self.budget.spend(len(text) // CHARACTERS, self.node)
        return text

    def fail(self, message: str) -> EvaluationError:
        return EvaluationError(message, self.node)


def _split(call: _Call, text: str, separator: str) -> list[str]:
    call.budget.spend((len(text) if separator == "" else text.count(separator)) + len(text) // CHARACTERS, call.node)
    return list(text) if separator == "" else text.split(separator)


def _replace(call: _Call, text: str, old: str, new: str) -> str:
    count = len(text) + 1 if old == "" else text.count(old)
    call.budget.spend((len(text) + count * (1 + len(new))) // CHARACTERS, call.node)
    return text.replace(old, new)


def _join(call: _Call, items: list[Any], separator: str = "") -> str:
    call.budget.spend(len(items), call.node)
    wrong = next((item for item in items if type(item) is not str), None)
    if wrong is not None or None in items:
        raise call.fail(f"`.join()` expects strings, got {kind_of(wrong)}; write .map(x, string(x)).join(...)")
    call.budget.spend((sum(map(len, items)) + len(separator) * len(items)) // CHARACTERS, call.node)
    return separator.join(items)


def _sum(call: _Call, items: list[Any]) -> Any:
    call.budget.spend(len(items), call.node)
    if wrong := [item for item in items if type(item) not in _NUMBERS]:
        raise call.fail(f"`.sum()` expects numbers, got {kind_of(wrong[0])}")
    try:
        total = sum(items)
    except OverflowError:
        raise call.fail("the number is too large") from None
    return _in_range(total, call.node) if type(total) is int else total


def _comparable(call: _Call, items: list[Any]) -> list[Any]:
    call.budget.spend(len(items), call.node)
    kinds = {type(item) for item in items}
    if kinds <= _NUMBERS or kinds <= _TEXTUAL or kinds <= _BOOLS:
        return items
    raise call.fail(f"`.{call.node.value}()` expects only numbers, only strings or only bools")


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[_Call, list[Any]], Any]:
    def find(call: _Call, items: list[Any]) -> Any:
        if not items:
            raise call.fail(f"`.{call.node.value}()` of an empty list")
        return choose(_comparable(call, items))

    return find


def _sort(call: _Call, items: list[Any]) -> list[Any]:
    call.budget.spend(len(items) * len(items).bit_length(), call.node)
    return sorted(_comparable(call, items))


def _distinct(call: _Call, items: list[Any]) -> list[Any]:
    values: list[Any] = []
    for item in items:
        call.budget.spend(1 + len(values), call.node)
        if not any(_equal(item, value, call.budget, call.node) for value in values):
            values.append(item)
    return values


def _index_of(call: _Call, items: list[Any], wanted: Any) -> int:
    call.budget.spend(len(items), call.node)
    places = (place for place, item in enumerate(items) if _equal(item, wanted, call.budget, call.node))
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


def _macro(node: Node) -> Evaluate:
    """Return a loop over a list, or over the keys of a map; each item costs as many visits as its body has nodes."""
    kind, name = node.value, node.args[1].value
    items_of, closures = _closure(node.args[0]), [*map(_closure, node.args[2:])]
    loop = _LOOPS[kind]

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
            items = _filter(of_each(0), items, node.args[2])
        return loop(of_each(-1 + len(closures)), items, node.args[-1])

    return iterate


def _quantified(stop: bool) -> Callable[[Evaluate, list[Any], Node], bool]:
    """Return `exists` (stop at true) or `all` (stop at false): an error counts only if no item decides."""

    def loop(answer: Evaluate, items: list[Any], node: Node) -> bool:
        problem: EvaluationError | None = None
        for item in items:
            try:
                if _truth(answer(item), node) is stop:
                    return stop
            except _Exhausted:
                raise
            except EvaluationError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return not stop

    return loop


def _filter(answer: Evaluate, items: list[Any], node: Node) -> list[Any]:
    return [item for item in items if _truth(answer(item), node)]


_LOOPS: Mapping[str, Callable[[Evaluate, list[Any], Node], Any]] = {
    "all": _quantified(False),
    "exists": _quantified(True),
    "exists_one": lambda answer, items, node: len(_filter(answer, items, node)) == 1,
    "filter": _filter,
    "map": lambda answer, items, node: [answer(item) for item in items],
}

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

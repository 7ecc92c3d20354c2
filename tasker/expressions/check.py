"""Static check of expressions: names, fields, optional fields and types, each problem with its place.

The check reports only what is certain: a value about which the schemas say nothing fits everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tasker.expressions.check_scope import CheckScope
from tasker.expressions.functions import FUNCTIONS, METHODS
from tasker.expressions.syntax import (
    BRANCH,
    MACROS,
    NAME,
    OPTIONAL,
    STEP,
    TYPE,
    UNDESCRIBED,
    Node,
    Problem,
    is_optional,
    known_if,
    path_of,
    written,
)
from tasker.expressions.types import (
    ANY,
    BOOL,
    DOUBLE,
    INT,
    NULL,
    NUMBER,
    NUMBERS,
    SCALARS,
    STRING,
    Type,
    list_of,
    object_of,
    union,
)

STEPS = "steps"
Path = tuple[Any, ...]
"""Names and constant indexes from a name in scope: `("input", "items", 0)`."""


_FUNCTION_TYPES: Mapping[str, Type] = {
    "size": INT,
    "int": INT,
    "double": DOUBLE,
    "string": STRING,
    "bool": BOOL,
    "dyn": ANY,
}
_METHOD_TYPES: Mapping[str, Type | None] = {
    **dict.fromkeys(("startsWith", "endsWith", "contains"), BOOL),
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim", "replace", "join"), STRING),
    **dict.fromkeys(("size", "indexOf"), INT),
    "split": list_of(STRING),
}
"""Types of methods' values; those of other methods follow from the list that they belong to."""
_PYTHON: Mapping[type, str] = {str: "string", list: "list"}


class Checker:
    """Check of one expression; collects its problems."""

    def __init__(self, scope: CheckScope) -> None:
        self.problems: list[Problem] = []
        self._scope = scope
        self._names = {**scope.names, STEPS: ANY}
        self._present: frozenset[Path] = frozenset()
        self._undescribed: list[Path] = []

    def check(self, node: Node) -> Type:
        """Return the type of the node's value."""
        type_: Type = getattr(self, f"_{node.kind}")(node)
        return type_

    def _report(self, kind: str, message: str, node: Node, hint: str | None = None) -> Type:
        self.problems.append(Problem(kind, message, node.offset, node.length, hint))
        return ANY

    def _constant(self, node: Node) -> Type:
        kind = {bool: BOOL, int: INT, float: DOUBLE, str: STRING}.get(type(node.value))
        return NULL if kind is None else Type(kind.name, values=(node.value,))

    def _name(self, node: Node) -> Type:
        if node.value not in self._names:
            return self._report(NAME, f"unknown name `{node.value}`", node, suggestion(node.value, self._names))
        if node.value == STEPS and STEPS not in self._scope.names:
            return self._report(NAME, "`steps` is read by name", node, "write steps.NAME")
        return self._narrowed(node, self._names[node.value])

    def _narrowed(self, node: Node, type_: Type) -> Type:
        """Return the type without null where an enclosing condition has excluded it."""
        if type_.members and ("not null", path_of(node)) in self._present:
            return union(*(member for member in type_.members if member is not NULL))
        return type_

    def _field(self, node: Node) -> Type:
        return self._access(node, must_exist=True)

    def _optional(self, node: Node) -> Type:
        return self._access(node, must_exist=False)

    def _index(self, node: Node) -> Type:
        if isinstance(node.key, str):
            return self._access(node, must_exist=True)
        owner, key = self.check(node.args[0]), self.check(node.args[1])
        if not owner.may_be("list", "object"):
            return self._report(TYPE, f"{_a(owner)} has no positions", node)
        if not key.may_be("int", "number", "double", "string"):
            return self._report(TYPE, f"a position is an int, got {_a(key)}", node.args[1])
        return union(*(_items(member) for member in owner.alternatives if member is not NULL))

    def _access(self, node: Node, must_exist: bool) -> Type:
        if _is_steps(node.args[0]) and STEPS not in self._scope.names:
            return self._result(node, must_exist)
        owner = self.check(node.args[0])
        if owner is ANY and self._scope.strict:
            self._report_undescribed(node.args[0])
        if is_optional(node.args[0]):
            must_exist = False
        return self._narrowed(node, self._member(owner, str(node.key), node, must_exist))

    def _report_undescribed(self, node: Node) -> None:
        """Report the value of a path whose fields are read, unless it belongs to a value that was reported."""
        path = path_of(node)
        if path is None or any(path[: len(other)] == other for other in self._undescribed):
            return
        self._undescribed.append(path)
        hint = f"give `{path[1]}` a `result_schema`" if len(path) == 2 and path[0] == STEPS else "describe its fields"
        self._report(UNDESCRIBED, f"no schema describes `{written(node)}`", node, hint)

    def _result(self, node: Node, must_exist: bool) -> Type:
        """Return the type of a step's result."""
        name, scope = str(node.key), self._scope
        if name in scope.steps:
            if must_exist and name in scope.uncertain and (STEPS, name) not in self._present:
                message = f"`{name}` may have no result: its branch was not taken, or the task went on without it"
                self._report(
                    BRANCH, message, node, f"write has(steps.{name}) ? ... : ..., or steps.?{name}.orValue(...)"
                )
            return scope.steps[name]
        if name == scope.step:
            return self._report(STEP, "a step cannot read its own result", node)
        if name in scope.known:
            hint = f"add `{name}` to the dependencies of `{scope.step}`"
            return self._report(STEP, f"`{name}` is not a step above `{scope.step}`", node, hint)
        return self._report(NAME, f"there is no step `{name}`", node, suggestion(name, scope.steps, "steps above: "))

    def _member(self, owner: Type, name: str, node: Node, must_exist: bool) -> Type:
        alternatives = [member for member in owner.alternatives if member is not NULL]
        if len(alternatives) < len(owner.alternatives) and must_exist and alternatives:
            path = written(node.args[0])
            self._report(
                OPTIONAL,
                f"`{path}` may be null",
                node.args[0],
                f"write {path} != null && ..., or .?{name}.orValue(...)",
            )
        types, optional = [], False
        for member in alternatives:
            if member is ANY:
                return ANY
            if name in member.fields:
                optional = optional or name not in member.required
                types.append(member.fields[name])
            elif member.rest is not None:
                types.append(member.rest)
        if not types:
            return self._no_field(owner, name, node)
        if optional and must_exist and path_of(node) not in self._present:
            path = written(node)
            self._report(
                OPTIONAL, f"`{path}` may be absent", node, f"write has({path}) && ..., or .?{name}.orValue(...)"
            )
        return union(*types)

    def _no_field(self, owner: Type, name: str, node: Node) -> Type:
        where = written(node.args[0])
        if owner.may_be("list"):
            hint = f"write {where}[0].{name}, or {where}.map(item, item.{name})"
            return self._report(TYPE, f"`{where}` is a list and has no field `{name}`", node, hint)
        if not owner.may_be("object"):
            return self._report(TYPE, f"`{where}` is {_a(owner)} and has no field `{name}`", node)
        known = {field for member in owner.alternatives for field in member.fields}
        return self._report(NAME, f"`{where}` has no field `{name}`", node, suggestion(name, known))

    def _list(self, node: Node) -> Type:
        return list_of(union(*(_widened(self.check(item)) for item in node.args)))

    def _map(self, node: Node) -> Type:
        fields: dict[str, Type] = {}
        rest: Type | None = None
        for key, value in zip(node.args[::2], node.args[1::2], strict=True):
            kind, type_ = self.check(key), self.check(value)
            if not kind.may_be("string"):
                self._report(TYPE, f"the key of a map is a string, got {_a(kind)}", key)
            if key.kind == "constant":
                fields[str(key.value)] = type_
            else:
                rest = type_ if rest is None else union(rest, type_)
        return Type("object", fields=fields, required=frozenset(fields), rest=rest) if rest else object_of(fields)

    def _unary(self, node: Node) -> Type:
        operand = self.check(node.args[0])
        if node.value == "!":
            self._need_bool(operand, node.args[0], "`!`")
            return BOOL
        if not operand.may_be(*NUMBERS):
            return self._report(TYPE, f"`-` expects a number, got {_a(operand)}", node)
        return _widened(operand)

    def _need_bool(self, type_: Type, node: Node, who: str) -> None:
        if not type_.may_be("bool"):
            self._report(TYPE, f"{who} expects a bool, got {_a(type_)}", node)

    def _under(self, known: frozenset[Path], node: Node) -> Type:
        before, self._present = self._present, self._present | known
        type_ = self.check(node)
        self._present = before
        return type_

    def _choice(self, node: Node) -> Type:
        condition, yes, no = node.args
        self._need_bool(self.check(condition), condition, "a condition")
        return union(self._under(known_if(condition, True), yes), self._under(known_if(condition, False), no))

    def _operation(self, node: Node) -> Type:
        left, right = node.args
        sign = node.value
        first = self.check(left)
        if sign in ("&&", "||"):
            second = self._under(known_if(left, sign == "&&"), right)
            for type_, part in ((first, left), (second, right)):
                self._need_bool(type_, part, f"`{sign}`")
            return BOOL
        second = self.check(right)
        if sign in ("==", "!="):
            self._compare_equal(node, first, second)
            return BOOL
        if sign == "in":
            if not second.may_be("list", "object"):
                self._report(TYPE, f"`in` expects a list or a map, got {_a(second)}", right)
            return BOOL
        if sign in ("<", "<=", ">", ">="):
            if not (_both(first, second, *NUMBERS) or _both(first, second, "string") or _both(first, second, "bool")):
                self._report(TYPE, f"`{sign}` cannot compare {_a(first)} with {_a(second)}", node)
            return BOOL
        return self._arithmetic(node, first, second)

    def _compare_equal(self, node: Node, first: Type, second: Type) -> None:
        names = [{("number" if m.name in NUMBERS else m.name) for m in t.alternatives} for t in (first, second)]
        if "anything" in names[0] | names[1] or "null" in names[0] | names[1]:
            return
        if not names[0] & names[1]:
            self._report(TYPE, f"{_a(first)} never equals {_a(second)}", node)
            return
        for one, other in ((first, second), (second, first)):
            if one.values is not None and len(one.values) == 1 and other.values and one.values[0] not in other.values:
                values = ", ".join(map(repr, other.values[:8]))
                hint = suggestion(str(one.values[0]), map(str, other.values))
                self._report(TYPE, f"never equal: expected one of {values}, got {one.values[0]!r}", node, hint)
                return

    def _arithmetic(self, node: Node, first: Type, second: Type) -> Type:
        sign = node.value
        kinds = (*NUMBERS, "string", "list") if sign == "+" else ("int", "number") if sign == "%" else NUMBERS
        if not any(_both(first, second, *group) for group in _groups(kinds)):
            text = "string" in (first.name, second.name) and sign == "+"
            hint = "write string(...) around the other value" if text else None
            return self._report(TYPE, f"`{sign}` cannot take {_a(first)} and {_a(second)}", node, hint)
        if ANY in (first, second) or first.members or second.members:
            return ANY
        if first.name == "list":
            return list_of(union(first.item or ANY, second.item or ANY))
        if first.name == "string":
            return STRING
        names = {first.name, second.name}
        return DOUBLE if "double" in names else NUMBER if "number" in names else INT

    def _function(self, node: Node) -> Type:
        if node.value == "has":
            return self._has(node)
        types = [self.check(argument) for argument in node.args]
        if node.value not in FUNCTIONS:
            known = [*FUNCTIONS, "has"]
            return self._report(NAME, f"unknown function `{node.value}`", node, suggestion(node.value, known))
        if len(types) != 1:
            return self._report(TYPE, f"`{node.value}()` takes 1 argument, got {len(types)}", node)
        fitting = ("string", "list", "object") if node.value == "size" else SCALARS
        if node.value != "dyn" and not types[0].may_be(*fitting):
            self._report(TYPE, f"`{node.value}()` cannot take {_a(types[0])}", node.args[0])
        return _FUNCTION_TYPES[node.value]

    def _has(self, node: Node) -> Type:
        if len(node.args) != 1 or node.args[0].key is None or node.args[0].kind == "optional":
            return self._report(TYPE, "has() takes a field", node, "for example has(input.coupon)")
        path = node.args[0]
        if path.kind == "index" and not isinstance(path.key, str):
            return self._report(TYPE, "has() takes a field, got a position of a list", path, "compare the size")
        self._access(path, must_exist=False)
        return BOOL

    def _method(self, node: Node) -> Type:
        if node.is_macro:
            return self._macro(node)
        owner, arguments = self.check(node.args[0]), [self.check(argument) for argument in node.args[1:]]
        name = node.value
        if name == "orValue":
            return union(owner, _widened(arguments[0])) if len(arguments) == 1 else ANY
        if name not in METHODS:
            hint = suggestion(name, [*METHODS, *MACROS, "orValue"])
            return self._report(NAME, f"unknown method `.{name}()`", node, hint)
        kind, parameters, _ = METHODS[name]
        belongs = ("string", "list", "object") if kind is None else (_PYTHON[kind],)
        if not owner.may_be(*belongs):
            return self._report(TYPE, f"`.{name}()` belongs to a {' or '.join(belongs)}, got {_a(owner)}", node)
        if len(arguments) != len(parameters):
            return self._report(TYPE, f"`.{name}()` takes {len(parameters)} arguments, got {len(arguments)}", node)
        for type_, expected, place in zip(arguments, parameters, node.args[1:], strict=True):
            if expected is not None and not type_.may_be(_PYTHON[expected]):
                self._report(TYPE, f"`.{name}()` takes a {_PYTHON[expected]}, got {_a(type_)}", place)
        if (type_of := _METHOD_TYPES.get(name)) is not None:
            return type_of
        if name in ("sort", "distinct"):
            return owner
        return union(*(_items(member) for member in owner.alternatives))

    def _macro(self, node: Node) -> Type:
        owner, name = self.check(node.args[0]), node.args[1].value
        if not owner.may_be("list", "object"):
            self._report(TYPE, f"`.{node.value}()` expects a list or a map, got {_a(owner)}", node)
        items = union(*(STRING if member.name == "object" else _items(member) for member in owner.alternatives))
        if name == STEPS:
            self._report(NAME, "`steps` cannot be the name of an item", node.args[1], "choose another name")
        names, present = self._names, self._present
        self._names = {**names, name: items}
        self._present = frozenset(path for path in present if name not in path)
        first, *rest = node.args[2:]
        bodies = [self.check(first), *(self._under(known_if(first, True), body) for body in rest)]
        self._names, self._present = names, present
        conditions = bodies if node.value != "map" else bodies[:-1]
        for type_, place in zip(conditions, node.args[2:], strict=False):
            self._need_bool(type_, place, f"`.{node.value}()`")
        if node.value == "map":
            return list_of(_widened(bodies[-1]))
        return list_of(items) if node.value == "filter" else BOOL


def _a(type_: Type) -> str:
    """Return the type with its article."""
    text = str(type_)
    return text if text in ("null", "anything") else f"an {text}" if text[0] in "io" else f"a {text}"


def _items(type_: Type) -> Type:
    if type_.name == "list":
        return type_.item or ANY
    return ANY


def _widened(type_: Type) -> Type:
    """Return the type without its listed values, which arithmetic does not keep."""
    return Type(type_.name) if type_.values is not None else type_


def _groups(kinds: Iterable[str]) -> list[tuple[str, ...]]:
    numbers = tuple(kind for kind in kinds if kind in NUMBERS)
    return [numbers, *((kind,) for kind in kinds if kind not in NUMBERS)]


def _both(first: Type, second: Type, *names: str) -> bool:
    return first.may_be(*names) and second.may_be(*names)


def _is_steps(node: Node) -> bool:
    return node.kind == "name" and node.value == STEPS


def suggestion(word: str, known: Iterable[str], otherwise: str = "known: ") -> str | None:
    """Return a hint with the nearest known word, or with all of them."""
    from difflib import get_close_matches  # lazy import, needed only for mistakes

    words = sorted(known)
    if matches := get_close_matches(word, words, n=1, cutoff=0.6):
        return f"did you mean `{matches[0]}`?"
    return otherwise + ", ".join(f"`{each}`" for each in words[:12]) if words else None

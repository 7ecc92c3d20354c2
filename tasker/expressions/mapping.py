"""Mappings with expressions: JSON whose texts may contain `${...}`.

A text that is one expression has the type of its value; in any other text each expression is replaced by its value,
which must be a scalar. `$${` stands for `${`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tasker.expressions.evaluation import Expression, expression
from tasker.expressions.functions import as_text
from tasker.expressions.syntax import SYNTAX, ExpressionError, Problem
from tasker.expressions.values import KINDS, Budget, EvaluationError, kind_of

Path = tuple[str | int, ...]
_OPEN = "${"
UNCLOSED = "close it, or write $${ for a plain `${`; outside quotes, ` #` begins a comment"
_SCAN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{}]", re.DOTALL)


class Part(NamedTuple):
    """Expression inside a text; `offset` is that of its first character in the text."""

    offset: int
    text: str


def split_text(text: str) -> list[str | Part]:
    """Return the literal and the computed parts of a text. Raises `ExpressionError` with an offset in the text."""
    parts: list[str | Part] = []
    literal, at = "", 0
    while (start := text.find(_OPEN, at)) >= 0:
        if start and text[start - 1] == "$":
            literal += text[at : start - 1] + _OPEN
            at = start + len(_OPEN)
            continue
        end = _end(text, start)
        literal += text[at:start]
        parts += [literal] if literal else []
        parts.append(Part(start + len(_OPEN), text[start + len(_OPEN) : end]))
        literal, at = "", end + 1
    literal += text[at:]
    return [*parts, literal] if literal or not parts else parts


def _end(text: str, start: int) -> int:
    """Return the offset of the brace that closes `${`."""
    depth, at = 0, start + len(_OPEN)
    while match := _SCAN.search(text, at):
        if match[0] == "}":
            if depth == 0:
                return match.start()
            depth -= 1
        elif match[0] == "{":
            depth += 1
        at = match.end()
    raise ExpressionError(Problem(SYNTAX, "`${` without its `}`", start, 2, UNCLOSED))


def texts_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every text of a mapping that contains `${`, with its path."""
    if isinstance(value, str):
        if _OPEN in value:
            yield path, value
        return
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, item in items:
        yield from texts_of(item, (*path, key))


class MappingFailure(Exception):
    """Mapping without a value: the path of the text, its expression and the part at which evaluation failed."""

    def __init__(self, path: str, expression: str, offset: int, length: int, reason: str) -> None:
        super().__init__(path, expression, offset, length, reason)
        self.path, self.expression, self.offset, self.length, self.reason = path, expression, offset, length, reason

    def __str__(self) -> str:
        line = self.expression.replace("\n", " ").replace("\t", " ")
        mark = " " * self.offset + "^" * max(1, min(self.length, len(line) - self.offset))
        return f"{self.path}: {self.reason}\n  {line}\n  {mark}"


Make = Callable[[Mapping[str, Any], Budget], Any]


class InputMapping:
    """Compiled mapping of a step's `inputs`, evaluated at the start of an attempt. Raises `ExpressionError`."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._fields = {name: computed(value, ("inputs", name)) for name, value in inputs.items()}

    def evaluate(self, scope: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs. Values that are not built by an expression are those of the scope, not copies.

        Raises `MappingFailure`.
        """
        budget = Budget()
        return {name: make(scope, budget) for name, make in self._fields.items()}

    def evaluate_each(self, scope: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the inputs that have a value, and the problems of the others by name."""
        inputs: dict[str, Any] = {}
        problems: dict[str, str] = {}
        budget = Budget()
        for name, make in self._fields.items():
            try:
                inputs[name] = make(scope, budget)
            except MappingFailure as error:
                problems[name] = str(error)
        return inputs, problems


def computed(value: Any, path: Path) -> Make:
    """Return the function that evaluates the texts of a value at `path`. Raises `ExpressionError`.

    The function raises `MappingFailure`.
    """
    if isinstance(value, str) and _OPEN in value:
        return _text(value, path)
    if isinstance(value, Mapping) and any(texts_of(value)):
        fields = {name: computed(item, (*path, name)) for name, item in value.items()}
        return lambda scope, budget: {name: make(scope, budget) for name, make in fields.items()}
    if isinstance(value, list | tuple) and any(texts_of(value)):
        items = [computed(item, (*path, number)) for number, item in enumerate(value)]
        return lambda scope, budget: [make(scope, budget) for make in items]
    return lambda scope, budget: value


def _whole(part: Expression, where: str) -> Make:
    def make(scope: Mapping[str, Any], budget: Budget) -> Any:
        try:
            return part.evaluate(scope, budget)
        except EvaluationError as error:
            raise MappingFailure(where, part.text, error.offset, error.length, error.message) from None

    return make


def value_of(text: str, path: Path, kind: type, scope: Mapping[str, Any], budget: Budget) -> Any:
    """Return the value of an expression that stands alone, which must be of this kind. Raises `MappingFailure`."""
    where = path_text(path)
    value = _whole(expression(text), where)(scope, budget)
    if type(value) is not kind:
        reason = f"expected {KINDS[kind]}, got {kind_of(value)}"
        raise MappingFailure(where, text, 0, len(text), reason)
    return value


def _text(text: str, path: Path) -> Make:
    parts = [part if isinstance(part, str) else expression(part.text) for part in split_text(text)]
    where = path_text(path)

    def scalar(part: Expression) -> Make:
        value_of = _whole(part, where)

        def make(scope: Mapping[str, Any], budget: Budget) -> str:
            value = value_of(scope, budget)
            try:
                return as_text(value, part.node)
            except EvaluationError as error:
                length = len(part.text)
                raise MappingFailure(where, part.text, 0, length, f"inside a text: {error.message}") from None

        return make

    if len(parts) == 1 and isinstance(parts[0], Expression):
        return _whole(parts[0], where)
    makers = [part if isinstance(part, str) else scalar(part) for part in parts]
    return lambda scope, budget: "".join(part if isinstance(part, str) else part(scope, budget) for part in makers)


def path_text(path: Path) -> str:
    """Return a path as text: `inputs.lines[0].amount`."""
    return str(path[0]) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path[1:])

"""Parser of expressions: text to a tree whose nodes know their offset.

The parser is generated from `grammar.lark` at the first expression of a process; lark is imported only then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tasker.dataclasses import dataclass

if TYPE_CHECKING:
    from lark import Lark, Token

MAX_TEXT = 4000
"""Maximum length of an expression in characters."""
MAX_DEPTH = 64
"""Maximum depth of its tree, which bounds every recursion over it."""
MOST, LEAST = 2**63 - 1, -(2**63)
"""Range of integers."""

MACROS = {"all": (2,), "exists": (2,), "exists_one": (2,), "filter": (2,), "map": (2, 3)}
"""Methods whose first argument is a name for the item, with their numbers of arguments."""

CONSTANTS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Problem:
    """Mistake in an expression; `kind` is a key of `KINDS`, `offset` and `length` say where it is."""

    kind: str
    message: str
    offset: int
    length: int = 1
    hint: str | None = None


class ExpressionError(ValueError):
    """Expression that cannot be parsed."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


SYNTAX, NAME, TYPE, OPTIONAL, STEP, BRANCH = "syntax", "name", "type", "optional", "step", "branch"
UNDESCRIBED = "undescribed"
KINDS = (SYNTAX, NAME, TYPE, OPTIONAL, STEP, BRANCH, UNDESCRIBED)


@dataclass(frozen=True, slots=True)
class Node:
    """Node of the tree.

    `kind` is a rule of the grammar or `constant`; `value` a name, an operator or a constant; `size` the number of nodes
    below it, itself included.
    """

    kind: str
    offset: int
    length: int
    value: Any = None
    args: tuple[Node, ...] = ()
    size: int = field(default=1, compare=False)
    depth: int = field(default=1, compare=False)

    @property
    def is_macro(self) -> bool:
        """True for `list.all(item, condition)` and the like."""
        return self.kind == "method" and len(self.args) - 1 in MACROS.get(self.value, ())

    @property
    def key(self) -> Any:
        """Name of the field, or the constant of the index; None for any other node."""
        if self.kind in ("field", "optional"):
            return self.value
        return self.args[1].value if self.kind == "index" and self.args[1].kind == "constant" else None

    def below(self) -> Iterator[Node]:
        """Yield this node and all nodes below it."""
        yield self
        for node in self.args:
            yield from node.below()


def parse(text: str) -> Node:
    """Return the tree of an expression. Raises `ExpressionError`."""
    if len(text) > MAX_TEXT:
        raise _error(f"the expression has {len(text)} characters, expected at most {MAX_TEXT}", 0, hint=HANDLER)
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

    try:
        node: Node = _parser().parse(text)  # type: ignore[assignment]
    except UnexpectedToken as error:
        raise _unexpected(text, error.token, set(error.expected)) from None
    except UnexpectedCharacters as error:
        raise _unreadable(text, cast(int, error.pos_in_stream)) from None
    except VisitError as error:
        raise error.orig_exc from None
    _check(node)
    return node


HANDLER = "write a handler for what takes more"


@cache
def _parser() -> Lark:
    from lark import Lark

    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=False, transformer=_Builder())


def _tree(kind: str, offset: int, length: int, value: Any, *args: Node) -> Node:
    depth = 1 + max((node.depth for node in args), default=0)
    if depth > MAX_DEPTH:
        raise _error(f"the expression is nested deeper than {MAX_DEPTH} levels", offset, hint=HANDLER)
    return Node(kind, offset, length, value, args, 1 + sum(node.size for node in args), depth)


def _node(kind: str, token: Token, value: Any, *args: Node) -> Node:
    return _tree(kind, token.start_pos or 0, len(token), value, *args)


class _Builder:
    """Callbacks of the grammar's rules."""

    def choice(self, args: list[Node]) -> Node:
        return _tree("choice", args[0].offset, args[0].length, None, *args)

    def operation(self, args: list[Any]) -> Node:
        left, operator, right = args
        return _node("operation", operator, str(operator), left, right)

    def unary(self, args: list[Any]) -> Node:
        operator, operand = args
        if operator == "-" and operand.kind == "constant" and type(operand.value) in (int, float):
            return Node("constant", operator.start_pos, 1 + operand.length, -operand.value)
        return _node("unary", operator, str(operator), operand)

    def field(self, args: list[Any]) -> Node:
        return _node("field", args[1], str(args[1]), args[0])

    def optional(self, args: list[Any]) -> Node:
        return _node("optional", args[1], str(args[1]), args[0])

    def method(self, args: list[Any]) -> Node:
        return _node("method", args[1], str(args[1]), args[0], *(args[2] if len(args) > 2 else ()))

    def index(self, args: list[Node]) -> Node:
        return _tree("index", args[1].offset, args[1].length, None, *args)

    def name(self, args: list[Any]) -> Node:
        (token,) = args
        if token in CONSTANTS:
            return _node("constant", token, CONSTANTS[token])
        return _node("name", token, str(token))

    def function(self, args: list[Any]) -> Node:
        return _node("function", args[0], str(args[0]), *(args[1] if len(args) > 1 else ()))

    def number(self, args: list[Any]) -> Node:
        (token,) = args
        if token.startswith("0x"):
            return _node("constant", token, int(token, 16))
        return _node("constant", token, float(token) if re.search(r"[.eE]", token) else int(token))

    def string(self, args: list[Any]) -> Node:
        (token,) = args
        raw = token.startswith("r")
        return _node("constant", token, str(token[2:-1]) if raw else _unescaped(token))

    def list(self, args: Any) -> Node:
        return _node("list", args[0], None, *(args[1] if len(args) > 1 else ()))

    def map(self, args: Any) -> Node:
        return _node("map", args[0], None, *(node for entry in (args[1] if len(args) > 1 else ()) for node in entry))

    def items(self, args: Any) -> Any:
        return args

    entries = entry = items


_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([abfnrtv\\'\"`?]))|\\"
)
_SHORT = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def _unescaped(token: Token) -> str:
    def value(match: re.Match[str]) -> str:
        offset = (token.start_pos or 0) + 1 + match.start()
        if match[5]:
            return _SHORT.get(match[5], match[5])
        digits = match[1] or match[2] or match[3]
        number = int(digits, 16) if digits else int(match[4], 8) if match[4] else -1
        if number < 1 or 0xD800 <= number < 0xE000 or number > 0x10FFFF:
            raise _error("an escape without a meaning", offset, hint=r"escapes are \n, \t, \\, \', \", \u00e9 ...")
        return chr(number)

    return _ESCAPE.sub(value, token[1:-1])


def _check(root: Node) -> None:
    """Check what the grammar cannot say: the range of numbers, and where an optional value may stand."""
    stack: list[tuple[Node, Node | None]] = [(root, None)]
    while stack:
        node, parent = stack.pop()
        stack += [(child, node) for child in node.args]
        if node.kind == "constant" and type(node.value) is int and not LEAST <= node.value <= MOST:
            raise _error("the number does not fit into 64 bits", node.offset, node.length)
        if node.is_macro and node.args[1].kind != "name":
            raise _error(f"expected a name for the item, as in .{node.value}(item, ...)", node.args[1].offset)
        if is_optional(node) and not (parent and parent.args[0] is node and _takes_optional(parent)):
            message = f"`.?{node.value}` may be absent" if node.kind == "optional" else "the value may be absent"
            raise _error(message, node.offset, node.length, "end with .orValue(...), which says what to use instead")
        if node.kind == "method" and node.value == "orValue" and not is_optional(node.args[0]):
            raise _error(
                "`.orValue()` follows an optional field", node.offset, node.length, "write input.?name.orValue(...)"
            )


def is_optional(node: Node) -> bool:
    """True if the value may be absent: `input.?customer.name` from the first `.?` on."""
    while node.kind in ("field", "index"):
        node = node.args[0]
    return node.kind == "optional"


def path_of(node: Node) -> tuple[Any, ...] | None:
    """Return the path that the node reads, or None if it is computed."""
    if node.kind == "name":
        return (node.value,)
    if node.key is None or (owner := path_of(node.args[0])) is None:
        return None
    return (*owner, node.key)


def written(node: Node) -> str:
    """Return the path that the node reads as text, for messages."""
    path = path_of(node)
    if path is None:
        return "the value"
    parts = [f".{part}" if isinstance(part, str) else f"[{part}]" for part in path[1:]]
    return f"{path[0]}{''.join(parts)}"


def known_if(condition: Node, outcome: bool) -> frozenset[tuple[Any, ...]]:
    """Return the paths that certainly exist if the condition has this outcome; null is excluded by `not null`."""
    if condition.kind == "unary" and condition.value == "!":
        return known_if(condition.args[0], not outcome)
    if condition.kind == "operation" and condition.value == ("&&" if outcome else "||"):
        return known_if(condition.args[0], outcome) | known_if(condition.args[1], outcome)
    if condition.kind == "function" and condition.value == "has" and outcome and condition.args:
        path = path_of(condition.args[0])
        return frozenset() if path is None else frozenset({path})
    if condition.kind == "operation" and condition.value == ("!=" if outcome else "=="):
        left, right = condition.args
        if right.kind == "constant" and right.value is None and (path := path_of(left)) is not None:
            return frozenset({("not null", path)})
    return frozenset()


def _takes_optional(parent: Node) -> bool:
    return parent.kind in ("field", "index", "optional") or (parent.kind == "method" and parent.value == "orValue")


def _error(message: str, offset: int, length: int = 1, hint: str | None = None) -> ExpressionError:
    return ExpressionError(Problem(SYNTAX, message, offset, length, hint))


_WORDS = {"and": "&&", "or": "||", "not": "!", "is": "==", "AND": "&&", "OR": "||", "NOT": "!"}


def _unexpected(text: str, token: Token, expected: set[str]) -> ExpressionError:
    offset = token.start_pos or 0 if token else len(text)  # the end is an empty token
    got = f"`{str(token)[:30]}`" if token else "the end"
    wanted = "a value" if "NUMBER" in expected else "a name" if expected == {"NAME"} else "an operator"
    if wanted == "an operator" and (closing := _unclosed(text[:offset])):
        wanted += f" or `{closing}`"
    hint = f"write `{_WORDS[token]}`" if str(token) in _WORDS else None
    return _error(f"expected {wanted}, got {got}", offset, max(1, len(token)), hint)


_BRACKETS = re.compile(r"[()\[\]{}]|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")


def _unclosed(text: str) -> str | None:
    """Return the bracket that closes the last open one."""
    closing = []
    for sign in _BRACKETS.findall(text):
        if sign in "([{":
            closing.append(")]}"["([{".index(sign)])
        elif sign in ")]}" and closing:
            closing.pop()
    return closing[-1] if closing else None


_SIGNS = {"=": "write `==`", "&": "write `&&`", "|": "write `||`", "~": "use .matches(...)"}


def _unreadable(text: str, offset: int) -> ExpressionError:
    character = text[offset]
    if character in "\"'":
        return _error(
            "the text is not closed", offset, hint=f"add the closing {character}; outside quotes, ` #` begins a comment"
        )
    if character == "." and text[offset + 1 : offset + 2] == ".":
        return _error("unexpected `..`", offset, 2)
    return _error(f"unexpected `{character}`", offset, hint=_SIGNS.get(character))

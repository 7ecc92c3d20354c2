"""Values of unquoted scalars by the core schema of YAML 1.2: `no` and `on` are text, `017` is 17, `0o17` is 15."""

from __future__ import annotations

import re
from typing import Any

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
DECIMAL = re.compile(r"[-+]?[0-9]+")
OCTAL = re.compile(r"0o[0-7]+")
HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

STARTS_NUMBER = frozenset("+-.0123456789")

CORE_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}


class BadScalar(ValueError):
    """Scalar without a value that a template can contain; the message is the reason, the hint the fix."""

    def __init__(self, message: str, hint: str = "put it in quotes if it is meant as text") -> None:
        super().__init__(message)
        self.hint = hint


def resolve_untagged(text: str) -> Any:
    """Return the value of an unquoted scalar.

    Raises `BadScalar` for a number that JSON cannot represent.
    """
    if text in NULLS:
        return None
    if text in BOOLEANS:
        return BOOLEANS[text]
    return _number(text) if text[0] in STARTS_NUMBER else text


def resolve_tagged(text: str, tag: str) -> Any:
    """Return the value of a scalar with an explicit core tag such as `!!str`.

    Raises `BadScalar` if the text does not match the tag.
    """
    kind = CORE_TAGS[tag]
    if kind == "str":
        return text
    value = resolve_untagged(text)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    expected = {"int": int, "float": float, "bool": bool, "null": type(None)}[kind]
    if type(value) is not expected:
        raise BadScalar(f"`{text}` is not a value of the tag `!!{kind}`", "remove the tag")
    return value


def _number(text: str) -> Any:
    if NOT_FINITE.fullmatch(text):
        raise BadScalar(f"`{text}` is not a number that JSON can hold")
    for pattern, base in ((DECIMAL, 10), (OCTAL, 8), (HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            return _integer(text, base)
    return _float(text) if FLOAT.fullmatch(text) else text


def _integer(text: str, base: int) -> int:
    digits = text[2:] if base != 10 else text
    if len(digits) > 1000:
        raise BadScalar("the number has more than 1000 digits")
    return int(digits, base)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadScalar(f"`{text}` is too large for a number")
    return value

"""Values of frozen classes where there are some for each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields, make_dataclass
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def maker_of(kind: Callable[P, T]) -> Callable[P, T]:
    """What makes values of a frozen dataclass with slots as calling it does, in a third of the time.

    A frozen class has to set each of its fields around what keeps them from being set. Here the fields are those of a
    class that is not frozen, and the value is given its own class in the end.
    """
    own: Any = kind
    same = [(each.name, each.type, field(default=each.default)) for each in fields(own)]
    draft = make_dataclass(own.__name__, same, slots=True)

    def make(*args: P.args, **named: P.kwargs) -> T:
        value: Any = draft(*args, **named)
        value.__class__ = kind
        made: T = value
        return made

    return make

"""Data classes whose definition takes a tenth of the time.

A process defines about three hundred data classes. For each, the standard library writes, compiles and runs up to six
methods at import: half a millisecond for a frozen class with slots. Few of these methods are ever called. `dataclass`
here lets the standard library read the fields and create the slots, and generates each method at its first access.

The rows `start_up_help` and `start_up_worker` of the benchmarks pay for it: with the standard library's, a command
takes 1.20 times the CPU until it has read its arguments, and the imports of a worker 1.25 times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields, is_dataclass
from dataclasses import dataclass as with_fields
from reprlib import recursive_repr
from sys import modules
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")
Method = Callable[..., Any]


def quick_dataclass(
    cls: type[T] | None = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Create a data class like `dataclasses.dataclass` with these options: same fields, methods, errors and pickles.

    Keyword-only fields (`kw_only`) and `InitVar` are not supported.
    """
    if cls is None:
        return lambda decorated: _made(decorated, eq, frozen, slots)
    return _made(cls, eq, frozen, slots)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = quick_dataclass


def _made(cls: type[T], eq: bool, frozen: bool, slots: bool) -> type[T]:
    own_names = {name for name, value in vars(cls).items() if value is not None}  # None: a hash that `__eq__` removed
    of_frozen = frozen and any(map(is_dataclass, cls.__mro__[1:]))  # else the standard library refuses the subclass
    made: Any = with_fields(init=False, repr=False, eq=False, frozen=of_frozen, slots=slots)(cls)
    made.__doc__ = (
        cls.__doc__ if "__doc__" in own_names else None
    )  # else it would describe an `__init__` without parameters
    params = made.__dataclass_params__
    params.init, params.repr, params.eq, params.frozen = True, True, eq, frozen
    for name, method in _methods(made, slots).items():
        if name not in own_names:
            setattr(made, name, method)
    made.__init__ = _Late(made, _init)
    kind: type[T] = made
    return kind


def _methods(kind: Any, slots: bool) -> dict[str, Any]:
    params = kind.__dataclass_params__
    methods: dict[str, Any] = {"__repr__": _Late(kind, _repr)}
    if params.eq:
        methods |= {"__eq__": _Late(kind, _eq), "__hash__": _Late(kind, _hash) if params.frozen else None}
    if params.frozen:
        methods |= _refusing(kind, frozenset(attribute.name for attribute in fields(kind)))
    if params.frozen and slots:
        methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
    return methods


def _refusing(kind: type[Any], names: frozenset[str]) -> dict[str, Method]:
    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, attribute.name) for attribute in fields(self)]


def _setstate(self: Any, state: Sequence[Any]) -> None:
    for attribute, value in zip(fields(self), state, strict=False):
        object.__setattr__(self, attribute.name, value)


class _Late:
    """Descriptor that generates a method at its first access, by an instance or by inspection of the class."""

    __slots__ = ("_kind", "_write")

    def __init__(self, kind: Any, write: Callable[[Any], Method]) -> None:
        self._kind, self._write = kind, write

    def __get__(self, value: object, owner: type | None = None) -> Any:
        method: Any = self._write(self._kind)
        setattr(self._kind, method.__name__, method)
        return method.__get__(value, owner)


def _init(kind: Any) -> Any:
    attributes = fields(kind)
    known: dict[str, Any] = {"__set": object.__setattr__, "__missing": MISSING}
    known |= {
        f"__default_{attribute.name}": attribute.default for attribute in attributes if attribute.default is not MISSING
    }
    known |= {
        f"__make_{attribute.name}": attribute.default_factory
        for attribute in attributes
        if attribute.default_factory is not MISSING
    }
    put = "__set(self, {0!r}, {1})" if kind.__dataclass_params__.frozen else "self.{0} = {1}"
    lines = [put.format(attribute.name, value) for attribute in attributes if (value := _value(attribute))]
    lines += ["self.__post_init__()"] if hasattr(kind, "__post_init__") else []
    taken = [_parameter(attribute) for attribute in attributes if attribute.init]
    init: Any = _written(kind, f"__init__({', '.join(['self', *taken])})", lines or ["pass"], known)
    init.__annotations__ = {attribute.name: attribute.type for attribute in attributes if attribute.init} | {
        "return": None
    }
    return init


def _repr(kind: Any) -> Method:
    attributes = ", ".join(
        f"{attribute.name}={{self.{attribute.name}!r}}" for attribute in fields(kind) if attribute.repr
    )
    text = f'return f"{{self.__class__.__qualname__}}({attributes})"'
    return recursive_repr()(_written(kind, "__repr__(self)", [text]))


def _eq(kind: Any) -> Method:
    lines = [
        "if other.__class__ is self.__class__:",
        f" return {_compared(kind, 'self')} == {_compared(kind, 'other')}",
    ]
    return _written(kind, "__eq__(self, other)", [*lines, "return NotImplemented"])


def _hash(kind: Any) -> Method:
    return _written(kind, "__hash__(self)", [f"return hash({_compared(kind, 'self')})"])


def _compared(kind: Any, value: str) -> str:
    """Return the source of a tuple of the compared fields."""
    return f"({''.join(f'{value}.{attribute.name}, ' for attribute in fields(kind) if attribute.compare)})"


def _written(kind: Any, head: str, lines: Sequence[str], known: Mapping[str, Any] = {}) -> Method:
    """Compile a function from its signature and body lines; `known` adds names to those of the class's module."""
    name, body = head.partition("(")[0], "\n  ".join(lines)
    text = f"def __make({', '.join(known)}):\n def {head}:\n  {body}\n return {name}"
    namespace: dict[str, Method] = {}
    exec(text, getattr(modules.get(kind.__module__), "__dict__", {}), namespace)
    made = namespace["__make"](*known.values())
    made.__qualname__ = f"{kind.__qualname__}.{name}"
    method: Method = made
    return method


def _parameter(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=__missing"
    return field.name if field.default is MISSING else f"{field.name}=__default_{field.name}"


def _value(field: Field[Any]) -> str:
    """Return the source of a field's initial value; empty if the field has no default and is not a parameter."""
    if field.default_factory is MISSING:
        default = "" if field.default is MISSING else f"__default_{field.name}"
        return field.name if field.init else default
    made = f"__make_{field.name}()"
    return f"{made} if {field.name} is __missing else {field.name}" if field.init else made

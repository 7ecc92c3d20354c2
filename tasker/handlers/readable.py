"""Members of published classes that mean the same whether they are read or called, so that a test with missing or
superfluous parentheses does not pass by mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")


class YesOrNo:
    """Boolean answer that can be used as it is or called."""

    __slots__ = ("_answer",)

    def __init__(self, answer: bool) -> None:
        self._answer = answer

    def __call__(self) -> bool:
        """Return the answer."""
        return self._answer

    def __bool__(self) -> bool:
        return self._answer

    def __eq__(self, other: object) -> bool:
        return self._answer == (other._answer if isinstance(other, YesOrNo) else other)

    def __hash__(self) -> int:
        return hash(self._answer)

    def __repr__(self) -> str:
        return repr(self._answer)


class yes_or_no(Generic[T]):  # lower case: a decorator, like `property`
    """Method without arguments that may also be read: `context.is_retry` is true exactly if `is_retry()` is."""

    def __init__(self, method: Callable[[T], bool]) -> None:
        self._method = self.__wrapped__ = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[[T], bool]: ...
    @overload
    def __get__(self, instance: T, owner: type) -> YesOrNo: ...
    def __get__(self, instance: T | None, owner: type) -> Callable[[T], bool] | YesOrNo:
        """Return the method on the class, its answer on an instance."""
        return self._method if instance is None else YesOrNo(self._method(instance))


class Constructor(Generic[P]):
    """Decorator of a class method that creates an instance; on an instance, the name has the value of `read`."""

    def __init__(self, make: Callable[Concatenate[Any, P], Any]) -> None:
        self._make, self.__wrapped__ = getattr(make, "__func__", make), make
        self.__doc__ = make.__doc__

    def read(self, instance: Any) -> bool:
        """Return the meaning of the name on an instance."""
        raise NotImplementedError

    @overload
    def __get__(self, instance: None, owner: type[T]) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: object, owner: type[T]) -> bool: ...
    def __get__(self, instance: object | None, owner: type[T]) -> Callable[P, T] | bool:
        """Return the constructor on the class, the answer on an instance."""
        return MethodType(self._make, owner) if instance is None else self.read(instance)

"""Copies of values that somebody else keeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any


def deep_copy(value: Any) -> Any:
    """A copy that a handler may change without the next handler seeing it; cheap for flat values."""
    if isinstance(value, dict):
        return {key: deep_copy(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    if isinstance(value, list):
        return [deep_copy(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


class CopyOnRead(Mapping[str, Any]):
    """Values that somebody else keeps, by name. Each is copied when it is read first: whoever reads it may change it.

    What is never read costs nothing: each of n batch workers is given the result that cut n batches. `names` do not
    change any more, `kept(name)` is a value as it is kept.
    """

    __slots__ = ("_copies", "_kept", "_names")

    def __init__(self, names: Collection[str], kept: Callable[[str], Any]) -> None:
        self._names, self._kept = names, kept
        self._copies: dict[str, Any] = {}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CopyOnRead:
        """These values for one more reader, who sees nothing of what others have made of their copies."""
        if isinstance(values, cls):
            return cls(values._names, values._kept)
        return cls(values, values.__getitem__)

    def __getitem__(self, name: str) -> Any:
        if name in self._copies:
            return self._copies[name]
        if name not in self._names:
            raise KeyError(name)
        return self._copies.setdefault(name, deep_copy(self._kept(name)))  # the threads of a handler get one copy

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def original(self, name: str) -> Any:
        """The value that somebody else keeps: to be looked at, and given to nobody."""
        return self._kept(name)

"""Copies of values that another component retains."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any


def deep_copy(value: Any) -> Any:
    """Return a copy that a handler may change without affecting the next handler; cheap for flat values."""
    if isinstance(value, dict):
        return {key: deep_copy(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    if isinstance(value, list):
        return [deep_copy(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


class CopyOnRead(Mapping[str, Any]):
    """Mapping that copies each value at its first read, so that the reader may change it.

    A value that is never read costs nothing: each of n batch workers is given the result that created n batches.
    `names` must not change any more; `kept(name)` returns the original value.
    """

    __slots__ = ("_copies", "_kept", "_names")

    def __init__(self, names: Collection[str], read: Callable[[str], Any]) -> None:
        self._names, self._kept = names, read
        self._copies: dict[str, Any] = {}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CopyOnRead:
        """Return a mapping for one more reader, which does not see changes that other readers made to their copies."""
        if isinstance(values, cls):
            return cls(values._names, values._kept)
        return cls(values, values.__getitem__)

    def __getitem__(self, name: str) -> Any:
        if name in self._copies:
            return self._copies[name]
        if name not in self._names:
            raise KeyError(name)
        return self._copies.setdefault(name, deep_copy(self._kept(name)))  # all threads of a handler get the same copy

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def original(self, name: str) -> Any:
        """Return the original value, which the caller must neither change nor pass on."""
        return self._kept(name)

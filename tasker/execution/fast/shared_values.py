"""Values of a task that are sent to a child process once and cached there, because many steps may read the same value.

For example, n batch workers read the result that was cut into n batches. The parent decides which values its child
caches and for how long. This module has the parent's and the child's side.

No row runs handlers in child processes. A step that reads a value of a megabyte takes 9 ms with it and 33 without; of
ten kilobytes 2.1 and 2.5.
"""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tasker.handlers.copies import CopyOnRead

KEPT_BYTES = 8 * 1024 * 1024
"""Bytes of JSON cached per child: twice the largest result that may be stored by default."""
WORTH_KEEPING = 1024
"""Smallest size in bytes of a cached value."""
REMEMBERED_TASKS = 100

Reference: TypeAlias = dict[str, Any]
"""A value as it is sent: `is` is the value, `as` the number under which the child caches it.

Without `is` the child has the value already; without `as` it does not cache it.
"""


Key: TypeAlias = tuple[str, str, str]
"""Task, kind and name of a value."""


class _Kept(NamedTuple):
    number: int
    value: Any
    size: int


class SharedValueSender:
    """The parent's record of the values that one child caches.

    Nothing is cached for the first step of a task in that child. Two values are equal if they are the same object: a
    value that the worker has read anew is sent anew.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit, self._size, self._numbers = limit, 0, itertools.count(1)
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._tasks: OrderedDict[str, set[Key]] = OrderedDict()
        self._used: frozenset[Key] = frozenset()
        self._used_size = 0
        self._dropped: list[int] = []

    def fields(self, task: str, **kinds: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields of a request: the values of each kind, and the numbers to `drop` once the child has read it."""
        again = self._remembered(task)
        self._use([(task, kind, name) for kind, values in kinds.items() for name in values])
        request_fields: dict[str, Any] = {}
        for kind, values in kinds.items():
            original = CopyOnRead.of(values).original
            request_fields[kind] = {
                name: self._reference((task, kind, name), original(name)) if again else {"is": original(name)}
                for name in values
            }
        dropped, self._dropped = self._dropped, []
        return {**request_fields, "drop": dropped}

    def _remembered(self, task: str) -> bool:
        """Return True when the child has run a step of the task; forget the least recently used task if too many."""
        again = task in self._tasks
        self._tasks.setdefault(task, set())
        self._tasks.move_to_end(task)
        if len(self._tasks) > REMEMBERED_TASKS:
            over = next(iter(self._tasks))
            for key in list(self._tasks[over]):
                self._drop(key)
            del self._tasks[over]
        return again

    def _use(self, keys: Sequence[Key]) -> None:
        """Mark the values of the request under construction: they are not evicted for one another."""
        self._used, self._used_size = frozenset(keys), 0
        for key in keys:
            if key in self._kept:
                self._kept.move_to_end(key)
                self._used_size += self._kept[key].size

    def _reference(self, key: Key, value: Any) -> Reference:
        if (entry := self._kept.get(key)) is not None and entry.value is value:
            return {"as": entry.number}
        if entry is not None:
            self._drop(key)
        size = len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))
        if size < WORTH_KEEPING or self._used_size + size > self._limit:
            return {"is": value}
        return {"is": value, "as": self._store(key, value, size)}

    def _store(self, key: Key, value: Any, size: int) -> int:
        while self._size + size > self._limit:
            self._drop(next(iter(self._kept)))
        self._kept[key] = entry = _Kept(next(self._numbers), value, size)
        self._tasks[key[0]].add(key)
        self._size += size
        self._used_size += size
        return entry.number

    def _drop(self, key: Key) -> None:
        dropped = self._kept.pop(key)
        self._tasks[key[0]].discard(key)
        self._size -= dropped.size
        self._used_size -= dropped.size if key in self._used else 0
        self._dropped.append(dropped.number)


class SharedValueReceiver:
    """The child's cache of values; every reader gets a copy."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}

    def read(self, references: Mapping[str, Reference]) -> CopyOnRead:
        """Return the values behind the references."""
        return CopyOnRead.of({name: self._value(reference) for name, reference in references.items()})

    def drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self._kept[number]

    def _value(self, reference: Reference) -> Any:
        if "is" not in reference:
            return self._kept[reference["as"]]
        if "as" in reference:
            self._kept[reference["as"]] = reference["is"]
        return reference["is"]

"""What a child process is sent of a task's values, each of them once: many steps of one task may read the same one.

n batch workers stand below the result that cut n batches. The parent decides what its child keeps, and for how long;
each has its part in this module.
"""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tasker.contracts.own_copy import CopyOnRead

KEPT_BYTES = 8 * 1024 * 1024
"""Of JSON, in one child: twice the largest result that may be stored, unless the configuration allows larger ones."""
WORTH_KEEPING = 1024
"""Bytes."""
REMEMBERED_TASKS = 100

Reference: TypeAlias = dict[str, Any]
"""A value as it is sent: `is` is the value, which the child keeps `as` a number where it has one; without `is` it has
it already."""


Key: TypeAlias = tuple[str, str, str]
"""Task, kind and name of a value."""


class _Kept(NamedTuple):
    number: int
    value: Any
    size: int


class SharedValueSender:
    """What one child keeps, as its parent knows it. Nothing of a task of which it runs the first step.

    A value is the same as long as it is the same object: what the worker asks the database for anew is sent anew.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit, self._size, self._numbers = limit, 0, itertools.count(1)
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._tasks: OrderedDict[str, set[Key]] = OrderedDict()
        self._used: frozenset[Key] = frozenset()
        self._used_size = 0
        self._dropped: list[int] = []

    def fields(self, task: str, **kinds: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of a request: under each kind its values, and what the child is to `drop` once it has seen them."""
        again = self._remembered(task)
        self._use([(task, kind, name) for kind, values in kinds.items() for name in values])
        found: dict[str, Any] = {}
        for kind, values in kinds.items():
            original = CopyOnRead.of(values).original
            found[kind] = {
                name: self._reference((task, kind, name), original(name)) if again else {"is": original(name)}
                for name in values
            }
        dropped, self._dropped = self._dropped, []
        return {**found, "drop": dropped}

    def _remembered(self, task: str) -> bool:
        """True when the child has run a step of the task. The one not met for longest is taken to be over."""
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
        """These are in the request that is being made: none of them makes room for another one."""
        self._used, self._used_size = frozenset(keys), 0
        for key in keys:
            if key in self._kept:
                self._kept.move_to_end(key)
                self._used_size += self._kept[key].size

    def _reference(self, key: Key, value: Any) -> Reference:
        if (kept := self._kept.get(key)) is not None and kept.value is value:
            return {"as": kept.number}
        if kept is not None:
            self._drop(key)
        size = len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))
        if size < WORTH_KEEPING or self._used_size + size > self._limit:
            return {"is": value}
        return {"is": value, "as": self._keep(key, value, size)}

    def _keep(self, key: Key, value: Any, size: int) -> int:
        while self._size + size > self._limit:
            self._drop(next(iter(self._kept)))
        self._kept[key] = kept = _Kept(next(self._numbers), value, size)
        self._tasks[key[0]].add(key)
        self._size += size
        self._used_size += size
        return kept.number

    def _drop(self, key: Key) -> None:
        dropped = self._kept.pop(key)
        self._tasks[key[0]].discard(key)
        self._size -= dropped.size
        self._used_size -= dropped.size if key in self._used else 0
        self._dropped.append(dropped.number)


class SharedValueReceiver:
    """What a child has been sent and keeps: whoever reads it gets a copy."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}

    def read(self, references: Mapping[str, Reference]) -> CopyOnRead:
        """The values that were sent in this way."""
        return CopyOnRead.of({name: self._value(each) for name, each in references.items()})

    def drop(self, numbers: Iterable[int]) -> None:
        """Keep these no longer."""
        for number in numbers:
            del self._kept[number]

    def _value(self, reference: Reference) -> Any:
        if "is" not in reference:
            return self._kept[reference["as"]]
        if "as" in reference:
            self._kept[reference["as"]] = reference["is"]
        return reference["is"]

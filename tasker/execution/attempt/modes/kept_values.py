"""What a child process is sent of a task's values, each of them once: many steps of one task may read the same one.

n batch workers stand below the result that cut n batches. The parent decides what its child keeps, and for how long;
each has its part in this module.
"""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tasker.contracts.own_copy import CopiedWhenRead

KEPT_BYTES = 8 * 1024 * 1024
"""Of JSON, in one child: twice the largest result."""
WORTH_KEEPING = 1024
"""Bytes."""
REMEMBERED_TASKS = 100

Reference: TypeAlias = dict[str, Any]
"""A value as it is sent: `is` is the value, which the child keeps `as` a number where it has one; without `is` it has
it already."""


class _Kept(NamedTuple):
    number: int
    value: Any
    size: int


class SentValues:
    """What one child keeps, as its parent knows it. Nothing of a task of which it runs the first step.

    A value is the same as long as it is the same object: what the worker asks the database for anew is sent anew.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit, self._size, self._numbers = limit, 0, itertools.count(1)
        self._kept: OrderedDict[tuple[str, str, str], _Kept] = OrderedDict()
        self._tasks: OrderedDict[str, None] = OrderedDict()
        self._dropped: list[int] = []

    def fields(self, task: str, **kinds: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of a request: under each kind its values, and what the child is to `drop` once it has seen them."""
        again = task in self._tasks
        self._tasks[task] = None
        self._tasks.move_to_end(task)
        if len(self._tasks) > REMEMBERED_TASKS:
            self._tasks.popitem(last=False)
        found: dict[str, Any] = {}
        for kind, values in kinds.items():
            original = CopiedWhenRead.of(values).original
            found[kind] = {
                name: self._reference((task, kind, name), original(name)) if again else {"is": original(name)}
                for name in values
            }
        dropped, self._dropped = self._dropped, []
        return {**found, "drop": dropped}

    def _reference(self, key: tuple[str, str, str], value: Any) -> Reference:
        if (kept := self._kept.get(key)) is not None and kept.value is value:
            self._kept.move_to_end(key)
            return {"as": kept.number}
        size = len(json.dumps(value))
        if not WORTH_KEEPING <= size <= self._limit:
            return {"is": value}
        return {"is": value, "as": self._keep(key, value, size)}

    def _keep(self, key: tuple[str, str, str], value: Any, size: int) -> int:
        if key in self._kept:
            self._drop(key)
        self._kept[key] = kept = _Kept(next(self._numbers), value, size)
        self._size += size
        while self._size > self._limit:
            self._drop(next(iter(self._kept)))
        return kept.number

    def _drop(self, key: tuple[str, str, str]) -> None:
        dropped = self._kept.pop(key)
        self._size -= dropped.size
        self._dropped.append(dropped.number)


class ReceivedValues:
    """What a child has been sent and keeps: whoever reads it gets a copy."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}

    def read(self, references: Mapping[str, Reference]) -> CopiedWhenRead:
        """The values that were sent in this way."""
        return CopiedWhenRead.of({name: self._value(each) for name, each in references.items()})

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

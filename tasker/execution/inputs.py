"""What handlers read, kept by task while its steps run here: context, and results by step name.

A step whose parents all ran in this process needs no query; for the rest the engine is asked once per group of claims.
The cache is bounded; what was evicted is fetched again. It holds results of complete steps alone, which nothing changes
any more: a result that was produced here comes in once the engine has accepted it. One that is only parked stays out,
since an orchestrator or an operator may still decide otherwise. Of what was produced here it keeps the text that is
stored, and reads that when a step wants it: what the handler returned may be changed by whoever else holds it, and is
not what a worker elsewhere would read (tuples, whole numbers that were written as floats). Whatever came over a
connection that was lost is asked for anew: the server that answers next may have forgotten it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Any

from tasker.contracts.json_text import JsonText
from tasker.contracts.own_copy import CopyOnRead
from tasker.contracts.plan import Plan, StepPlan
from tasker.lifecycle.storable import as_stored
from tasker.services.engine.changes import ExpansionRecord
from tasker.services.engine.claims import Inputs, TaskInputs
from tasker.services.engine.exchange import Result

CACHED_TASKS = 4096
OFTEN = 50
"""Steps of one task, after which a claim need not tell again what they read: it may be large, and they many."""
MOST_OFTEN = 100
"""How many such tasks a claim names."""


class InputCache:
    """What the engine says of tasks, by task identifier; the least recently used make room."""

    def __init__(self, limit: int = CACHED_TASKS) -> None:
        self._limit = limit
        self._tasks: OrderedDict[str, TaskInputs] = OrderedDict()
        self._often: dict[str, None] = {}
        self.kept_since = 0
        """Grows when everything is dropped."""

    @property
    def often(self) -> list[str]:
        """Tasks of which many steps have begun here; some of them where there are many."""
        return list(islice(self._often, MOST_OFTEN))

    def learn(self, inputs: Inputs) -> None:
        """Take in what an answer of the engine says about tasks and results."""
        for task_uuid, task in inputs.items():
            if (known := self._tasks.setdefault(task_uuid, task)) is not task:
                known.results.update(task.results)
            self._tasks.move_to_end(task_uuid)
        while len(self._tasks) > max(self._limit, len(inputs)):
            self._often.pop(self._tasks.popitem(last=False)[0], None)

    def add_result(self, result: Result, growth: ExpansionRecord | None = None) -> None:
        """Keep a result that was produced here and that its step has completed with, and what it has added."""
        claim = result.claim
        if not result.success or (task := self._tasks.get(claim.task_uuid)) is None:
            return
        task.results[claim.name] = (claim.ordinal, result.success.encoded)
        if growth is not None:
            task.decided.add(claim.name)
            for row in growth.steps:
                task.created.setdefault(row["ordinal"], []).append(row["name"])

    def forget(self, task_uuids: Iterable[str]) -> None:
        """Drop tasks that have ended."""
        for task_uuid in task_uuids:
            self._tasks.pop(task_uuid, None)
            self._often.pop(task_uuid, None)

    def clear(self) -> None:
        """Drop everything."""
        self._tasks.clear()
        self._often.clear()
        self.kept_since += 1

    def require(self, task_uuid: str) -> TaskInputs:
        """The task, which must have been learned just now: a step begins with it."""
        task = self._tasks[task_uuid]
        task.uses += 1
        if task.uses == OFTEN:
            self._often[task_uuid] = None
        return task

    def knows(self, task_uuid: str, plan: Plan, step: StepPlan) -> bool:
        """True when the task and every ancestor's result are here for certain.

        Below a decision or batchable step it depends on the run which ancestors exist: that is known where all of those
        that decide have completed here.
        """
        task = self._tasks.get(task_uuid)
        if task is None:
            return False
        self._tasks.move_to_end(task_uuid)  # what is learned with it makes others go
        above, results = plan.above.of(step.name), task.results
        if step.name not in plan.below_dynamic:
            return all(name in results for name in above)
        return all(
            name in results and (name in task.decided or not ancestor.type.expands)
            for ancestor in map(plan.by_name.__getitem__, above)
            for name in ((ancestor.name,) if ancestor.static else task.created.get(ancestor.ordinal, ()))
        )

    def dependency_results(self, task: TaskInputs, plan: Plan, step: StepPlan) -> CopyOnRead:
        """The results of all ancestors that have one, by step name, sorted; instances by their numbers."""
        results, ancestors = task.results, plan.above.of(step.name)
        if step.name not in plan.below_dynamic:
            return _copied(results, [name for name in ancestors if name in results])
        names = {plan.by_name[name].ordinal: name for name in ancestors}
        found = [(names[ordinal], len(name), name) for name, (ordinal, _) in results.items() if ordinal in names]
        return _copied(results, [name for *_, name in sorted(found)])


def _copied(results: dict[str, tuple[int, Any]], names: list[str]) -> CopyOnRead:
    return CopyOnRead(dict.fromkeys(names), partial(_read, results))


def _read(results: dict[str, tuple[int, Any]], name: str) -> Any:
    """A result; one that was produced here is read for the first time."""
    ordinal, value = results[name]
    if isinstance(value, JsonText):
        value = as_stored(value)
        results[name] = (ordinal, value)
    return value

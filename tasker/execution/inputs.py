"""Cache of handler inputs by task: the task's context, and results by step name.

A step whose parents all ran in this process needs no query; other inputs are read once per group of claims. The cache
is bounded and evicted values are read again. It has results of complete steps only, which never change: a result
produced here is added once the engine has accepted it. A parked result is left out, since an orchestrator or an
operator may still decide otherwise. For results produced here the cache has the stored text, and decodes it when a step
needs it: the handler's own object may still be changed by other code, and differs from what other workers read (tuples,
whole numbers that were written as floats). When the connection is lost the cache is cleared: the server that answers
next may lack the latest writes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any

from tasker.engine.changes import ExpansionRecord
from tasker.engine.exchange import Inputs, Result, TaskInputs
from tasker.handlers.copies import CopyOnRead
from tasker.json_values import JsonText, as_stored
from tasker.template.plan import Plan, StepPlan

CACHED_TASKS = 4096
OFTEN = 50
"""Number of started steps of one task from which claims no longer ask for its inputs, which may be large."""
MOST_OFTEN = 100
"""Largest number of such tasks that a claim names."""


class InputCache:
    """Inputs of tasks by task identifier; the least recently used are evicted."""

    def __init__(self, limit: int = CACHED_TASKS) -> None:
        self._limit = limit
        self._tasks: OrderedDict[str, TaskInputs] = OrderedDict()
        self._often: dict[str, None] = {}
        self.kept_since = 0
        """Generation of the cache, incremented by `clear`."""

    @property
    def often(self) -> list[str]:
        """Return tasks of which many steps have started here, at most `MOST_OFTEN`.

        A task with a deadline is not named, since an operator may have continued it after the deadline.
        """
        return list(islice((task for task in self._often if self._tasks[task].ends_at is None), MOST_OFTEN))

    def learn(self, inputs: Inputs) -> None:
        """Add what an answer of the engine says about tasks and results."""
        for task_uuid, task in inputs.items():
            if (known := self._tasks.setdefault(task_uuid, task)) is not task:
                known.results.update(task.results)
                known.failures, known.outcome = task.failures, task.outcome
                known.ends_at = task.ends_at  # an operator may have continued the task after its deadline
            self._tasks.move_to_end(task_uuid)
        while len(self._tasks) > max(self._limit, len(inputs)):
            self._often.pop(self._tasks.popitem(last=False)[0], None)

    def add_result(self, result: Result, growth: ExpansionRecord | None = None) -> None:
        """Add an accepted result of a step that ran here, and the steps that it created."""
        claim = result.claim
        if not result.success or (task := self._tasks.get(claim.task_uuid)) is None:
            return
        task.results[claim.name] = (claim.ordinal, result.success.encoded)
        if growth is not None:
            task.decided.add(claim.name)
            task.growths[claim.name] = growth
            for row in growth.steps:
                task.created.setdefault(row["ordinal"], []).append(row["name"])

    def growths(self, task_uuid: str) -> Mapping[str, ExpansionRecord] | None:
        """Return the known expansions of a task by the step that decided; later ones are added to it."""
        task = self._tasks.get(task_uuid)
        return None if task is None else task.growths

    def forget(self, task_uuids: Iterable[str]) -> None:
        """Drop tasks that have ended."""
        for task_uuid in task_uuids:
            self._tasks.pop(task_uuid, None)
            self._often.pop(task_uuid, None)

    def clear(self) -> None:
        self._tasks.clear()
        self._often.clear()
        self.kept_since += 1

    def require(self, task_uuid: str) -> TaskInputs:
        """Return the inputs of a task that was just learned, and count a started step."""
        task = self._tasks[task_uuid]
        task.uses += 1
        if task.uses == OFTEN:
            self._often[task_uuid] = None
        return task

    def knows(self, task_uuid: str, plan: Plan, step: StepPlan) -> bool:
        """Return True when the task and every ancestor's result are certainly cached.

        Below a decision or batchable step the ancestors depend on the task. They are known if all steps that decide
        have completed here.
        """
        task = self._tasks.get(task_uuid)
        if task is None or step.is_late:  # only the database knows how the other steps ended
            return False
        self._tasks.move_to_end(task_uuid)  # marks it as recently used, since learning other tasks evicts
        above, results = plan.above.of(step.name), task.results
        if step.name not in plan.below_dynamic:
            return all(name in results for name in above)
        return all(
            name in results and (name in task.decided or not ancestor.type.expands)
            for ancestor in map(plan.by_name.__getitem__, above)
            for name in ((ancestor.name,) if ancestor.static else task.created.get(ancestor.ordinal, ()))
        )

    def dependency_results(self, task: TaskInputs, plan: Plan, step: StepPlan) -> CopyOnRead:
        """Return the results of all ancestors that have one, by step name, sorted; step instances by their numbers."""
        results, ancestors = task.results, plan.above.of(step.name)
        if step.name not in plan.below_dynamic:
            return _copied(results, [name for name in ancestors if name in results])
        names = {plan.by_name[name].ordinal: name for name in ancestors}
        sort_keys = [(names[ordinal], len(name), name) for name, (ordinal, _) in results.items() if ordinal in names]
        return _copied(results, [name for *_, name in sorted(sort_keys)])


def _copied(results: dict[str, tuple[int, Any]], names: list[str]) -> CopyOnRead:
    return CopyOnRead(dict.fromkeys(names), partial(_read, results))


def _read(results: dict[str, tuple[int, Any]], name: str) -> Any:
    """Return a result; one that was produced here is decoded on first use."""
    ordinal, value = results[name]
    if isinstance(value, JsonText):
        value = as_stored(value)
        results[name] = (ordinal, value)
    return value

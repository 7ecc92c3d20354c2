"""Pausing and resuming of a namespace, a template, one of its steps, a task, or an orchestration queue."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, TypedDict

from tasker.dataclasses import dataclass
from tasker.db.sql_files import query
from tasker.engine.answers import PauseAnswer, ResumeAnswer
from tasker.engine.calls import Engine
from tasker.engine.exchange import MARK_SLICE
from tasker.errors import MessagingError, StateMachineError, TaskNotFound, UsageError
from tasker.errors.remedies import remedy, see
from tasker.json_values import require_findable
from tasker.messaging.queues import namespace_of
from tasker.services.audit import audited
from tasker.services.tasks.read import checked
from tasker.template.diagnostics import did_you_mean, listed
from tasker.views.fleet import Pause, PauseList
from tasker.views.model import decode


@dataclass(frozen=True, slots=True)
class PauseTarget:
    """Target of a pause: a task, an orchestration queue, a namespace, a template of it (every version), or a step of
    that."""

    namespace: str | None = None
    template: str | None = None
    step: str | None = None
    task: str | None = None
    queue: str | None = None

    @classmethod
    def of(
        cls,
        namespace: str | None = None,
        *,
        template: str | None = None,
        step: str | None = None,
        task: str | None = None,
        queue: str | None = None,
    ) -> PauseTarget:
        """Return the target for exactly one of `NS`, `NS/TEMPLATE`, `NS/TEMPLATE/STEP`, a task's UUID and a queue.

        Raises `UsageError`.
        """
        if sum(value is not None for value in (namespace, template, step, task, queue)) != 1:
            raise UsageError(
                "expected exactly one target",
                hint="a namespace, or a template (NS/NAME), or a step (NS/NAME/STEP), or a task's uuid, or a queue",
            )
        require_findable(next(filter(None, (namespace, template, step, task, queue)), ""), "pause")
        if queue is not None:
            return cls(queue=queue)
        if task is not None:
            return cls(task=checked(task))
        if template is not None:
            return cls(*_parts(template, 2, "a template", "NAMESPACE/TEMPLATE"))
        if step is not None:
            return cls(*_parts(step, 3, "a step of a template", "NAMESPACE/TEMPLATE/STEP"))
        return cls(namespace)

    def __str__(self) -> str:
        return self.task or self.queue or "/".join(filter(None, (self.namespace, self.template, self.step)))

    def args(self) -> dict[str, str]:
        """Return the target as arguments of the engine's functions."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def _parts(text: str, count: int, what: str, form: str) -> list[str]:
    parts = text.split("/")
    if len(parts) != count or not all(parts):
        raise UsageError(f"{text!r} does not name {what}", hint=f"expected {form}")
    return parts


class PauseOptions(TypedDict, total=False):
    """Targets other than a namespace, as keywords of `PauseTarget.of`."""

    template: str | None
    step: str | None
    task: str | None
    queue: str | None


class Pauses:
    """Use cases of pauses. Running steps continue; other steps of the target, ready now or later, do not start.

    Messages of a paused orchestration queue are not received; those received before are processed. Processes learn of a
    pause by notification, or without notifications within two sweep intervals.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @audited("App.pauses.pause")
    async def pause(self, target: PauseTarget, *, actor: str, reason: str) -> bool:
        """Pause the target. Return False if it is already paused (the first actor and reason stay).

        Raises `TaskNotFound`, `StateMachineError` for a task that has ended, `UsageError` for an unknown target.
        """
        if target.queue is not None:
            self._require_queue(target.queue)
            return PauseAnswer.parse(await self._engine.read("pause_queue", _args(target, actor, reason))).paused
        answer = await self._engine.call_typed("pause", _args(target, actor, reason), PauseAnswer)
        if answer.final is not None:
            raise StateMachineError(f"task {target} is {answer.final}, so it cannot be paused")
        if answer.missing is not None:
            raise _missing(target, answer.missing)
        if answer.marks_left:
            await self._change_marks()
        return answer.paused

    @audited("App.pauses.resume")
    async def resume(self, target: PauseTarget, *, actor: str, reason: str = "") -> int | None:
        """End the pause of exactly this target. Return the number of ready steps it stopped, or None if it was not
        paused.

        At most 10,000 steps are counted for a namespace. For a queue, return the number of its messages, or 0 if the
        broker does not answer. Raises `TaskNotFound`, `UsageError` for an unknown target.
        """
        if target.queue is not None:
            return await self._resume_queue(target, target.queue, actor, reason)
        answer = await self._engine.call_typed("resume", _args(target, actor, reason), ResumeAnswer)
        if answer.missing is not None:
            raise _missing(target, answer.missing)
        freed = await self._change_marks() if answer.marks_left else 0
        return answer.held + freed if answer.resumed else None

    async def _change_marks(self) -> int:
        """Update the pause marks of the remaining backlogged steps, one short transaction per slice. Return the number
        of steps freed.

        If this process dies, sweeps continue.
        """
        freed, more = 0, True
        while more:
            answer = await self._engine.read("marks", {"slice": MARK_SLICE})
            freed, more = freed + (answer.get("freed") or 0), bool(answer.get("more"))
        return freed

    async def list(self, *, log: int = 20) -> PauseList:
        """Return the current pauses with what each stops, and the newest `log` entries of the log of pauses."""
        pause_list: PauseList = decode(PauseList, await self._engine.read("paused", {"limit": log}))
        return replace(pause_list, pauses=[await self._counted(pause) for pause in pause_list.pauses])

    async def of_task(self, task: str) -> Pause | None:
        """Return the pause of the task itself, even if it stops nothing yet, or None if the task is not paused.

        The steps that it stops are not counted.
        """
        rows = await self._engine.connection.execute(query("tasks", "own_pause"), {"task": checked(task)})
        return next((decode(Pause, pause) for (pause,) in rows), None)

    async def _counted(self, pause: Pause) -> Pause:
        return pause if pause.queue is None else replace(pause, held=await self._messages(pause.queue))

    async def _resume_queue(self, target: PauseTarget, queue: str, actor: str, reason: str) -> int | None:
        """Resume a queue, even if the configuration no longer has it."""
        waiting = await self._messages(queue)
        answer = ResumeAnswer.parse(await self._engine.read("resume_queue", _args(target, actor, reason)))
        if answer.resumed:
            return waiting or 0
        self._require_queue(queue)
        return None

    async def _messages(self, queue: str) -> int | None:
        messaging = self._engine.messaging
        try:
            return (await messaging.queue_stats(queue)).depth if await messaging.queue_exists(queue) else 0
        except MessagingError:
            return None

    def _require_queue(self, queue: str) -> None:
        known = self._engine.messaging.names.orchestration()
        if queue not in known:
            hint = _worker_queue(queue) or did_you_mean(queue, known) or f"the orchestration has {listed(known)}"
            raise UsageError(f"the orchestration has no queue of that name: {queue}", hint=hint)


def _args(target: PauseTarget, actor: str, reason: str) -> dict[str, Any]:
    return {**target.args(), "actor": actor, "reason": reason, "slice": MARK_SLICE}


def _worker_queue(queue: str) -> str | None:
    if not (queue.startswith("worker_") and queue.endswith("_queue")):
        return None
    namespace = namespace_of(queue)
    hint = f"to stop the steps of a worker queue, pause its namespace {namespace}: {{}}"
    return remedy(hint, "tasker pause", f" {namespace}")


def _missing(target: PauseTarget, what: str) -> TaskNotFound | UsageError:
    if what == "task":
        return TaskNotFound(f"no task {target} in this database", hint=see("tasker task list"))
    if what == "namespace" and target.namespace and target.namespace.startswith("orchestration"):
        return UsageError(f"{target} is not a namespace", hint=f"for a queue of the orchestration: --queue {target}")
    exists = "a namespace and its templates exist once one of them is registered; see {}"
    hint = remedy(exists, "tasker template list")
    return UsageError(f"no {what} of that name in this database: {target}", hint=hint)

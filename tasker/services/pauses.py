"""Pausing what must not start for now, and resuming it: a namespace, a template, one of its steps, a task; or a
queue of the orchestration."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TypedDict

from tasker.contracts.dataclasses import dataclass
from tasker.db.queries import query
from tasker.errors import MessagingError, StateMachineError, TaskNotFound, UsageError
from tasker.lifecycle.storable import require_findable
from tasker.messaging.queues import namespace_of
from tasker.services.by_hand import audited
from tasker.services.engine.answers import PauseAnswer, ResumeAnswer
from tasker.services.engine.calls import Engine
from tasker.services.listings import Pause, PauseList
from tasker.services.tasks import checked
from tasker.template.diagnostics import did_you_mean, listed


@dataclass(frozen=True, slots=True)
class PauseTarget:
    """What is paused: a task; an orchestration queue; else a namespace, or of it a template (every version), or of that
    a step."""

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
        """Exactly one of `NS`, `NS/TEMPLATE`, `NS/TEMPLATE/STEP`, a task's uuid and a queue. Raises `UsageError`."""
        if sum(given is not None for given in (namespace, template, step, task, queue)) != 1:
            raise UsageError(
                "say what is meant: one thing, not none and not several",
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
        """As the engine takes it."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def _parts(text: str, count: int, what: str, form: str) -> list[str]:
    parts = text.split("/")
    if len(parts) != count or not all(parts):
        raise UsageError(f"{text!r} does not name {what}", hint=f"expected {form}")
    return parts


class PauseOptions(TypedDict, total=False):
    """What else than a namespace may be paused, as `PauseTarget.of` takes it."""

    template: str | None
    step: str | None
    task: str | None
    queue: str | None


class Pauses:
    """The use cases around pauses. What runs goes on; whatever else of the target is or becomes ready is held.

    Of an orchestration queue nobody takes messages; what was taken before is dealt with. Processes hear of it by
    notification, without notifications within two intervals of sweeps.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @audited("App.pauses.pause")
    async def pause(self, target: PauseTarget, *, actor: str, reason: str) -> bool:
        """Pause the target; False when it is paused already (the first actor and reason stay).

        Raises `TaskNotFound`, `StateMachineError` for a task that has ended, `UsageError` for an unknown target.
        """
        if target.queue is not None:
            self._require_queue(target.queue)
            return PauseAnswer.parse(await self._engine.read("pause_queue", _args(target, actor, reason))).paused
        answer = await self._engine.call_typed("pause", _args(target, actor, reason), PauseAnswer)
        if answer.final is not None:
            raise StateMachineError(f"task {target} is {answer.final}: there is nothing to pause")
        if answer.missing is not None:
            raise _missing(target, answer.missing)
        if answer.marks_left:
            await self._change_marks()
        return answer.paused

    @audited("App.pauses.resume")
    async def resume(self, target: PauseTarget, *, actor: str, reason: str = "") -> int | None:
        """End the pause of exactly this target; how many ready steps it held, None when it was not paused.

        Of a namespace at most 10,000 are counted. Of a queue: how many messages lay in it, as far as the provider can
        be asked. Raises `TaskNotFound`, `UsageError` for an unknown target.
        """
        if target.queue is not None:
            return await self._resume_queue(target, target.queue, actor, reason)
        answer = await self._engine.call_typed("resume", _args(target, actor, reason), ResumeAnswer)
        if answer.missing is not None:
            raise _missing(target, answer.missing)
        freed = await self._change_marks() if answer.marks_left else 0
        return answer.held + freed if answer.resumed else None

    async def _change_marks(self) -> int:
        """Mark or free the rest of the held steps, one short transaction for each slice; how many were freed.

        When this process dies, sweeps go on.
        """
        freed, more = 0, True
        while more:
            answer = await self._engine.read("marks", {})
            freed, more = freed + (answer.get("freed") or 0), bool(answer.get("more"))
        return freed

    async def list(self, *, log: int = 20) -> PauseList:
        """What is paused, with what each pause holds, and the newest `log` entries of who paused and resumed what."""
        found = PauseList.parse(await self._engine.read("paused", {"limit": log}))
        return replace(found, pauses=[await self._counted(pause) for pause in found.pauses])

    async def of_task(self, task: str) -> Pause | None:
        """The pause of the task itself, also while it holds nothing yet; None: the task is not paused.

        What it holds is not counted.
        """
        rows = await self._engine.connection.execute(query("tasks", "own_pause"), {"task": checked(task)})
        return next((Pause(**found) for (found,) in rows), None)

    async def _counted(self, pause: Pause) -> Pause:
        """What a queue holds are its messages."""
        return pause if pause.queue is None else replace(pause, held=await self._messages(pause.queue))

    async def _resume_queue(self, target: PauseTarget, queue: str, actor: str, reason: str) -> int | None:
        """Also of a name that the configuration does not have any more."""
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


def _args(target: PauseTarget, actor: str, reason: str) -> dict[str, str]:
    return {**target.args(), "actor": actor, "reason": reason}


def _worker_queue(queue: str) -> str | None:
    if not (queue.startswith("worker_") and queue.endswith("_queue")):
        return None
    return f"the steps of a worker queue are held by pausing its namespace: tasker pause {namespace_of(queue)}"


def _missing(target: PauseTarget, what: str) -> TaskNotFound | UsageError:
    if what == "task":
        return TaskNotFound(f"no task {target} in this database", hint="see `tasker task list`")
    if what == "namespace" and target.namespace and target.namespace.startswith("orchestration"):
        return UsageError(f"{target} is no namespace", hint=f"for a queue of the orchestration: --queue {target}")
    hint = "a namespace and its templates exist once one of them is registered; see `tasker template list`"
    return UsageError(f"no {what} of that name in this database: {target}", hint=hint)

"""Pausing what must not start for now, and resuming it: a namespace, a template, one of its steps, a task (H-29)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tasker.errors import StateMachineError, TaskNotFound, UsageError
from tasker.services.engine import Engine
from tasker.services.tasks import checked

Found = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Target:
    """What is paused: a task; else a namespace, or of it a template (every version), or of that a step."""

    namespace: str | None = None
    template: str | None = None
    step: str | None = None
    task: str | None = None

    @classmethod
    def of(
        cls,
        namespace: str | None = None,
        *,
        template: str | None = None,
        step: str | None = None,
        task: str | None = None,
    ) -> Target:
        """Exactly one of `NS`, `NS/TEMPLATE`, `NS/TEMPLATE/STEP` and a task's uuid. Raises `UsageError`."""
        if sum(given is not None for given in (namespace, template, step, task)) != 1:
            raise UsageError(
                "say what is meant: one thing, not none and not several",
                hint="a namespace, or a template (NS/NAME), or a step (NS/NAME/STEP), or a task's uuid",
            )
        if task is not None:
            return cls(task=checked(task))
        if template is not None:
            return cls(*_parts(template, 2, "a template", "NAMESPACE/TEMPLATE"))
        if step is not None:
            return cls(*_parts(step, 3, "a step of a template", "NAMESPACE/TEMPLATE/STEP"))
        return cls(namespace)

    def __str__(self) -> str:
        return self.task or "/".join(filter(None, (self.namespace, self.template, self.step)))

    def args(self) -> dict[str, str]:
        """As the engine takes it."""
        values = {"namespace": self.namespace, "template": self.template, "step": self.step, "task": self.task}
        return {key: value for key, value in values.items() if value is not None}


def _parts(text: str, count: int, what: str, form: str) -> list[str]:
    parts = text.split("/")
    if len(parts) != count or not all(parts):
        raise UsageError(f"{text!r} does not name {what}", hint=f"expected {form}")
    return parts


class Pauses:
    """The use cases around pauses. What runs goes on; whatever else of the target is or becomes ready is held."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def pause(self, target: Target, *, actor: str, reason: str) -> bool:
        """Pause the target; False when it is paused already (the first actor and reason stay).

        Raises `TaskNotFound`, `StateMachineError` for a task that has ended, `UsageError` for an unknown target.
        """
        answer = await self._engine.call("pause", {**target.args(), "actor": actor, "reason": reason})
        if "final" in answer:
            raise StateMachineError(f"task {target} is {answer['final']}: there is nothing to pause")
        if missing := answer.get("missing"):
            raise _missing(target, missing)
        return bool(answer["paused"])

    async def resume(self, target: Target, *, actor: str, reason: str = "") -> int | None:
        """End the pause of exactly this target; how many ready steps it held, None when it was not paused.

        Raises `TaskNotFound`, `UsageError` for an unknown target.
        """
        answer = await self._engine.call("resume", {**target.args(), "actor": actor, "reason": reason})
        if missing := answer.get("missing"):
            raise _missing(target, missing)
        return int(answer["held"]) if answer["resumed"] else None

    async def list(self, *, log: int = 20) -> Found:
        """`pauses`, the oldest first, with what each holds; `log`, the newest first: who paused and resumed what."""
        return await self._engine.read("paused", {"limit": log})


def _missing(target: Target, what: str) -> TaskNotFound | UsageError:
    if what == "task":
        return TaskNotFound(f"no task {target} in this database", hint="see `tasker task list`")
    hint = "a namespace and its templates exist once one of them is registered; see `tasker template list`"
    return UsageError(f"no {what} of that name in this database: {target}", hint=hint)

"""Firing of schedules: decides what is due, submits the tasks, and records each fire time with them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.sql_files import query
from tasker.engine.answers import CancelAnswer, FireAnswer
from tasker.engine.calls import Engine
from tasker.engine.fire_plan import QUEUED_SLICE, Fire, FirePlan, ScheduleState, plan_fires
from tasker.engine.fire_times import FireTimes
from tasker.engine.identity import fire_identity
from tasker.engine.plans import PlanStore, RegisteredPlan
from tasker.errors import (
    DatabaseError,
    DatabaseUnavailable,
    MessagingError,
    PlanUnreadable,
    PoolExhausted,
    TaskerError,
    UsageError,
)
from tasker.services.submission.lost_commit import log_created_tasks
from tasker.services.submission.submit import Draft, DraftFactory, Submission

KEEP = {"keep_days": 90, "keep_fires": 10}
"""Days for which fires stay in the history, and the number of the newest ones that stay longer."""
SLICE = 20
"""Schedules that are fired in a row."""
ROUNDS = 3
"""Decisions in a row for one schedule: after a cancelled task, after a template that was registered anew."""
_log = logging.getLogger("tasker.orchestration")


class ScheduleUnreadable(TaskerError):
    """Error of a schedule of a newer version of Tasker: processes of that version fire it."""

    error_type = "schedule_unreadable"


@dataclass(frozen=True, slots=True)
class DraftedFires:
    """Fires of one decision with the tasks to submit, which are of one template. `plan` is None without tasks."""

    fires: Sequence[Fire]
    drafts: Sequence[Draft | None]
    plan: RegisteredPlan | None = None

    def items(self) -> list[dict[str, Any]]:
        """Return the fires as arguments of `tasker.fire_schedule_v1`."""
        return [
            {
                "fire_at": fire.fire_at.isoformat(),
                "kind": fire.kind,
                "outcome": fire.outcome,
                "detail": fire.detail,
                **({} if draft is None else {"task": draft.item}),
            }
            for fire, draft in zip(self.fires, self.drafts, strict=True)
        ]


class ScheduleFiring:
    """Firing of schedules by one process; any number of processes may fire the same schedule at the same moment."""

    def __init__(self, engine: Engine, plans: PlanStore, drafts: DraftFactory) -> None:
        self._engine, self._plans, self._drafts = engine, plans, drafts
        self.outcomes: Counter[str] = Counter()
        """Fire times that this process decided about, by outcome."""
        self._failing: set[str] = set()
        self._allowed: bool | None = None

    async def fire_all(self, schedules: Sequence[str]) -> float | None:
        """Do what is due for each schedule, and return the milliseconds until one of them is due again.

        Of many, some follow when the process looks again, so that nothing else waits long. One that fails, or that only
        a newer version can read, stays due and does not keep the others from firing. Raises `DatabaseUnavailable`,
        `PoolExhausted`.
        """
        if not await self._may_fire():
            await self._engine.connection.execute("select pg_notify('tasker_timers', '')")  # the others look
            return None
        known = sorted(schedules, key=self._failing.__contains__)  # the others first, in their order
        due: list[float] = [1.0] if any(schedule not in self._failing for schedule in known[SLICE:]) else []
        for schedule in known[:SLICE]:
            try:
                if (due_ms := await self.fire(schedule)) is not None:
                    due.append(due_ms)
                self._failing.discard(schedule)
            except (DatabaseUnavailable, PoolExhausted):
                raise
            except TaskerError as error:
                if schedule not in self._failing:
                    _log.warning("schedule_failed schedule=%s reason=%s", schedule, error)
                self._failing.add(schedule)
        return min(due, default=None)

    async def _may_fire(self) -> bool:
        """Return whether this process may create tasks; the role of workers may not."""
        if self._allowed is None:
            ((self._allowed,),) = await self._engine.connection.execute(query("schedules", "may_fire"), {})
            if not self._allowed:
                _log.info("schedules_fired_elsewhere reason=this role may not create tasks")
        return bool(self._allowed)

    async def fire(self, schedule: str) -> float | None:
        """Do what is due, and return the milliseconds until the schedule is due again.

        None: it has nothing to do any more, or another process was faster. Raises `DatabaseError`, `MessagingError`.
        """
        for _ in range(ROUNDS):
            if (state := await self.state(schedule)) is None:
                return None
            decision = plan_fires(state)
            answer = await self._write(state, decision)
            if answer.moved:
                return None
            if not answer.forgotten and not decision.cancel:
                return answer.due_ms
            await self._cancel(state, decision.cancel)
        return 1000.0

    async def trigger(self, schedule: str, detail: dict[str, Any]) -> str | None:
        """Submit a task of the schedule now, whatever runs, and return its id; None if the schedule is gone.

        Raises the errors of a submission.
        """
        for attempt in range(10 * ROUNDS):
            if (state := await self.state(schedule)) is None:
                return None
            moment = state.now + timedelta(microseconds=attempt)
            fire = Fire(moment, "trigger", "fired", state.last_fire_at, detail)
            plan = await self._plan_of(state)
            drafted = DraftedFires([fire], [self._draft(state, plan, fire)], plan)
            answer = await self._call(state, drafted, {"trigger": True})
            if answer.created:
                return next(iter(answer.created))
            if answer.running:  # a task with the same unique key
                return str(next(iter(answer.running.values()))[0])
        raise UsageError("the schedule changes too often to be triggered", hint="trigger it again")

    async def state(self, schedule: str) -> ScheduleState | None:
        """Return what is known of the schedule, or None if there is none. Raises `ScheduleUnreadable`."""
        rows = await self._engine.connection.execute(
            query("schedules", "state"), {"schedule": schedule, "queued": QUEUED_SLICE}
        )
        try:
            return ScheduleState.parse(rows[0][0]) if rows else None
        except (TypeError, ValueError, KeyError) as error:
            raise ScheduleUnreadable(f"a newer version of Tasker has stored it ({error})") from error

    async def _write(self, state: ScheduleState, decision: FirePlan) -> FireAnswer:
        times = {"anchor_at": decision.anchor_at, "next_at": decision.next_at, "due_at": decision.due_at}
        args = {name: moment and moment.isoformat() for name, moment in times.items()}
        return await self._call(state, await self._drafted(state, decision.fires), args)

    async def _call(self, state: ScheduleState, drafted: DraftedFires, more: dict[str, Any]) -> FireAnswer:
        began = perf_counter()
        args: dict[str, Any] = {"schedule": state.schedule, "revision": state.revision, **KEEP, **more}
        if drafted.plan is not None:
            args |= self._drafts.args(drafted.plan.template_id, [], stored=drafted.plan.hash)
        answer = await self._engine.call_typed("fire_schedule", {**args, "fires": drafted.items()}, FireAnswer)
        if answer.forgotten:
            self._plans.forget()
        elif not answer.moved:
            self._log(state, drafted, answer, began)
        return answer

    def _log(self, state: ScheduleState, drafted: DraftedFires, answer: FireAnswer, began: float) -> None:
        fires = [_outcome(fire, draft, answer) for fire, draft in zip(drafted.fires, drafted.drafts, strict=True)]
        self.outcomes.update(fire.outcome for fire in fires)
        drafts = [draft for draft in drafted.drafts if draft is not None]
        if drafted.plan is not None:
            log_created_tasks(self._engine.listeners, drafted.plan.plan, drafts, answer, began)
        for fire in fires:
            level = logging.WARNING if fire.outcome == "refused" else logging.INFO
            name = f"{state.namespace}/{state.template}/{state.name}"
            _log.log(
                *(level, "schedule_%s schedule=%s fire_at=%s kind=%s%s", fire.outcome, name, fire.fire_at.isoformat()),
                *(fire.kind, f" reason={fire.detail['error']}" if fire.outcome == "refused" and fire.detail else ""),
            )

    async def _cancel(self, state: ScheduleState, tasks: Sequence[str]) -> None:
        """Cancel open tasks, so that the fire that waits has room; those that ended meanwhile are none."""
        reason = f"schedule {state.namespace}/{state.template}/{state.name} fired again"
        for task in tasks:
            args = {"task": task, "reason": reason, "actor": "schedule"}
            await self._engine.call_typed("cancel", args, CancelAnswer)

    async def _drafted(self, state: ScheduleState, fires: Sequence[Fire]) -> DraftedFires:
        """Return the fires with their tasks; those that cannot be submitted are refused, with the reason."""
        if not any(fire.outcome == "fired" for fire in fires):
            return DraftedFires(fires, [None] * len(fires))
        try:
            plan = await self._plan_of(state)
        except (DatabaseError, MessagingError, PlanUnreadable):
            raise
        except TaskerError as error:
            return DraftedFires([_refused(fire, error) for fire in fires], [None] * len(fires))
        decided: list[Fire] = []
        drafts: list[Draft | None] = []
        for fire in fires:
            draft = None
            try:
                draft = self._draft(state, plan, fire) if fire.outcome == "fired" else None
            except TaskerError as error:
                fire = _refused(fire, error)
            decided.append(fire)
            drafts.append(draft)
        return DraftedFires(decided, drafts, plan if any(drafts) else None)

    async def _plan_of(self, state: ScheduleState) -> RegisteredPlan:
        return await self._plans.find(state.namespace, state.template, state.version)

    def _draft(self, state: ScheduleState, plan: RegisteredPlan, fire: Fire) -> Draft:
        name = f"{state.namespace}/{state.template}/{state.name}"
        request = Submission(
            {**state.spec.context, **fire_context(state, fire)},
            idempotency_key=name,
            initiator=f"schedule:{name}",
            reason=f"{fire.kind} of {fire.fire_at.isoformat()}",
        )
        draft = self._drafts.draft(plan.plan, request)
        identity = fire_identity(state.schedule, fire.kind, fire.fire_at)
        item = {**draft.item, "identity": identity}
        if item.pop("debounce", None):  # a fire is one task, which begins at its time
            del item["delay_ms"]
        return replace(draft, identity=identity, item=item)


def _outcome(fire: Fire, draft: Draft | None, answer: FireAnswer) -> Fire:
    """Return the fire as it was recorded: skipped if a task runs under its unique key."""
    return replace(fire, outcome="skipped") if draft is not None and draft.task_uuid in answer.running else fire


def fire_context(state: ScheduleState, fire: Fire) -> dict[str, Any]:
    """Return the fields of a task's context that a fire fills in."""
    times = FireTimes(state.spec)
    local = times.local(fire.fire_at)
    values = {
        "fire_time": local.isoformat(),
        "fire_date": local.date().isoformat(),
        "previous_fire_time": _local_text(times, fire.previous),
        "schedule": state.name,
    }
    return {field: values[value] for field, value in state.spec.context_from.items()}


def _local_text(times: FireTimes, moment: datetime | None) -> str | None:
    return None if moment is None else times.local(moment).isoformat()


def _refused(fire: Fire, error: TaskerError) -> Fire:
    if fire.outcome != "fired":
        return fire
    return replace(fire, outcome="refused", detail={**(fire.detail or {}), "error": error.message[:2000]})

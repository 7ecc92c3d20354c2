"""Schedules for operators: created, listed, paused, triggered and backfilled. Processes fire them by themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.errors import (
    InputInvalid,
    PlanUnreadable,
    ScheduleNotFound,
    StateMachineError,
    TemplateNotFound,
    UsageError,
)
from tasker.errors.remedies import see
from tasker.json_values import require_findable
from tasker.redaction import REDACTED, Redactor, marks
from tasker.services.audit import audited
from tasker.services.submission.starts import with_zone
from tasker.services.submission.submit import DraftFactory
from tasker.services.tasks.read import names
from tasker.template.plan import Plan
from tasker.views.schedules import Backfill, Schedule, ScheduleFire, SchedulePause, UpcomingFire, parts_of

if TYPE_CHECKING:
    from tasker.services.schedule_firing import ScheduleFiring

MOST_BACKFILLED = 500
"""Fire times of one backfill."""
MOST_UPCOMING = 100


class Schedules:
    """Use cases of schedules. A schedule is named `namespace/template/name`; unknown ones raise `ScheduleNotFound`."""

    def __init__(self, engine: Engine, plans: PlanStore, drafts: DraftFactory) -> None:
        self._engine, self._plans, self._drafts = engine, plans, drafts

    @cached_property
    def _firing(self) -> ScheduleFiring:
        from tasker.services.schedule_firing import ScheduleFiring  # lazy import, needed by few commands

        return ScheduleFiring(self._engine, self._plans, self._drafts)

    async def list(
        self,
        *,
        namespace: str | None = None,
        template: str | None = None,
        namespaces: Collection[str] | None = None,
        after: str = "",
        limit: int = 100,
    ) -> Sequence[Schedule]:
        """Return schedules by namespace, template and name, behind the one named `after`."""
        for what, text in (("namespace", namespace), ("template", template), ("schedule", after)):
            require_findable(text or "", what)
        place = parts_of(after) if after else ("", "", "")
        which = {"namespace": namespace, "template": template, "name": None, "namespaces": names(namespaces)}
        return [self._schedule(row, None) for (row,) in await self._listed(which, place, limit)]

    async def get(self, address: str) -> Schedule:
        """Return one schedule, with its context."""
        row = await self._row(address)
        return self._schedule(row, await self._context_of(row))

    async def fires(self, address: str, *, limit: int = 50, before: datetime | None = None) -> Sequence[ScheduleFire]:
        """Return the newest fires of the history, those before a fire time."""
        which = {"schedule": (await self._row(address))["schedule_uuid"], "limit": limit, "before": before}
        return [_fire(row) for (row,) in await self._query("fires", **which)]

    async def upcoming(self, address: str, *, count: int = 10, after: datetime | None = None) -> Sequence[UpcomingFire]:
        """Return the next fire times, at most 100, from now or after a time. A pause does not change them."""
        from tasker.engine.fire_times import FireTimes  # lazy import, needed by few commands

        row = await self._row(address)
        times = FireTimes(_spec(row))
        begin = _checked(after, "after") or _time(row["now"])
        found = times.upcoming(begin, min(count, MOST_UPCOMING))
        return [UpcomingFire(moment, times.local(moment).isoformat(), times.note(moment)) for moment in found]

    @audited("App.schedules.create")
    async def create(
        self,
        address: str,
        keys: Mapping[str, Any],
        *,
        version: str | None = None,
        overwrite: bool = False,
        actor: str | None = None,
    ) -> Schedule:
        """Create a schedule of a registered template, or replace one that was created like this.

        `keys` are those of a schedule in a template, except its name. Raises `UsageError` for keys with a mistake,
        `TemplateNotFound`, `InputInvalid` if the context does not fit the template, `StateMachineError` if there is a
        schedule of that name and `overwrite` is not set, or if a template declares it.
        """
        from tasker.template.schedules import context_problems, parse_schedule  # lazy import, as above

        namespace, template, _name = parts_of(address)
        spec, problems = parse_schedule(keys)
        if spec is None:
            raise UsageError(f"the schedule {address} has mistakes:\n  " + "\n  ".join(problems))
        plan = (await self._plans.find(namespace, template, version)).plan
        if mismatches := context_problems(plan, spec):
            lines = "\n".join(f"  {each.path}: {each.message}" for each in mismatches)
            raise InputInvalid(f"the context of {address} does not fit its template:\n{lines}", problems=mismatches)
        more = {"version": version, "spec": spec.stored(), "replace": overwrite}
        await self._change("create", address, actor, "", **more)
        return await self.get(address)

    @audited("App.schedules.pause")
    async def pause(self, address: str, *, actor: str | None = None, reason: str = "") -> bool:
        """Pause the schedule. Return False if it is paused already. Open tasks continue."""
        return bool((await self._change("pause", address, actor, reason))["changed"])

    @audited("App.schedules.resume")
    async def resume(self, address: str, *, actor: str | None = None, reason: str = "") -> bool:
        """End a pause. Return False if there is none. Fire times of the pause get no tasks."""
        return bool((await self._change("resume", address, actor, reason))["changed"])

    @audited("App.schedules.delete")
    async def delete(self, address: str, *, actor: str | None = None, reason: str = "") -> None:
        """Delete a schedule with its history; its tasks stay.

        Raises `StateMachineError` while a template declares it.
        """
        await self._change("delete", address, actor, reason)

    @audited("App.schedules.trigger")
    async def trigger(self, address: str, *, actor: str | None = None, reason: str = "") -> str:
        """Submit a task of the schedule now, and return its id, whether the schedule is paused or has an open task.

        Raises the errors of a submission.
        """
        row = await self._row(address)
        task = await self._firing.trigger(row["schedule_uuid"], {"actor": actor or "", "reason": reason})
        if task is None:
            raise _missing(address)
        return task

    async def plan_backfill(self, address: str, begin: datetime, end: datetime) -> Backfill:
        """Return what a backfill of this span would do now, without starting it. Raises as `backfill`."""
        return await self._backfill(address, begin, end)

    @audited("App.schedules.backfill")
    async def backfill(
        self, address: str, begin: datetime, end: datetime, *, actor: str | None = None, reason: str = ""
    ) -> Backfill:
        """Submit the tasks of past fire times from `begin` until before `end`, except those that have one.

        They begin one after the other, also while the schedule is paused; with `overlap: allow` all at once. Raises
        `UsageError` for more than 500 fire times, and for a span that is not past.
        """
        planned = await self._backfill(address, begin, end)
        if not planned.fires:
            return planned
        args = {"fires": [moment.isoformat() for moment in planned.fires]}
        detail = {"actor": actor or "", "reason": reason}
        await self._change("backfill", address, actor, reason, **args, detail=detail)
        return replace(planned, started=True)

    async def _backfill(self, address: str, begin: datetime, end: datetime) -> Backfill:
        row = await self._row(address)
        times = _past_times(_spec(row), _checked(begin, "from"), _checked(end, "to"), _time(row["now"]))
        which = {"schedule": row["schedule_uuid"], "times": times}
        done = {moment for moment, outcome in await self._query("between", **which) if outcome in ("fired", "queued")}
        fires = [moment for moment in times if moment not in done]
        return Backfill(fires, len(times) - len(fires), started=False)

    async def _change(self, change: str, address: str, actor: str | None, reason: str, **more: Any) -> dict[str, Any]:
        namespace, template, name = parts_of(address)
        args = {"change": change, "namespace": namespace, "template": template, "name": name, "actor": actor or ""}
        answer = await self._engine.read("change_schedule", {**args, "reason": reason, **more})
        refused = answer.get("refused")
        if refused == "missing":
            raise _missing(address)
        if refused == "declared":
            raise StateMachineError(
                f"the schedule {address} is declared by its template",
                hint="change it there and register a new version; here it can be paused",
            )
        if refused == "exists":
            raise StateMachineError(f"the schedule {address} exists", hint="overwrite it (`overwrite`, --overwrite)")
        return answer

    async def _row(self, address: str) -> dict[str, Any]:
        namespace, template, name = parts_of(address)
        which = {"namespace": namespace, "template": template, "name": name, "namespaces": None}
        rows = await self._listed(which, ("", "", ""), 1)
        if not rows:
            raise _missing(address)
        return dict(rows[0][0])

    async def _listed(self, which: Mapping[str, Any], place: Sequence[str], limit: int) -> Sequence[tuple[Any, ...]]:
        after = dict(zip(("after_namespace", "after_template", "after_name"), place, strict=True))
        return await self._query("listed", **which, **after, limit=limit)

    async def _query(self, name: str, /, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("schedules", name), params)

    async def _context_of(self, row: Mapping[str, Any]) -> Any:
        """Return the context of a schedule, redacted by the template's schema; all of it is hidden without one."""
        context = row["spec"].get("context")
        if not context:
            return None
        try:
            plan = (await self._plans.find(row["namespace"], row["template"], row["version"])).plan
        except (TemplateNotFound, PlanUnreadable):
            return REDACTED
        return _redacted(plan, context)

    def _schedule(self, row: Mapping[str, Any], context: Any) -> Schedule:
        spec, pause, last = _spec(row), row["paused"], row["last"]
        keys = {key: value for key, value in spec.keys().items() if key != "context"}
        state = _state(row)
        same = ("schedule_uuid", "namespace", "template", "name", "version", "declared", "queued", "running")
        return Schedule(
            **{key: row[key] for key in same},
            state=state,
            sentence=_sentence(row, state),
            keys=keys if context is None else {**keys, "context": context},
            timezone=spec.timezone,
            next_at=row["next_at"] and _time(row["next_at"]),
            paused=pause and SchedulePause(pause["actor"] or "", _time(pause["at"]), pause["reason"] or ""),
            last=last and _fire({"task_state": None, **last}),
            created_at=_time(row["created_at"]),
            updated_at=_time(row["updated_at"]),
        )


def _missing(address: str) -> ScheduleNotFound:
    return ScheduleNotFound(f"no schedule {address} in this database", hint=see("tasker schedule list"))


def _spec(row: Mapping[str, Any]) -> Any:
    from tasker.template.schedules import ScheduleSpec  # lazy import, as above

    try:
        return ScheduleSpec.parse(row["spec"])
    except TypeError as error:
        raise PlanUnreadable(
            f"the schedule {row['namespace']}/{row['template']}/{row['name']} cannot be read by this version of Tasker "
            f"({error})",
            hint="a newer version has stored it: bring this process up to that version",
        ) from error


def _past_times(spec: Any, begin: datetime | None, end: datetime | None, now: datetime) -> Sequence[datetime]:
    from tasker.engine.fire_times import FireTimes  # lazy import, as above

    if begin is None or end is None or begin >= end:
        raise UsageError("a backfill needs a span: its begin is before its end")
    if end > now:
        raise UsageError("a backfill ends in the past", hint=f"it is {now.isoformat(timespec='seconds')} now")
    tick = timedelta(microseconds=1)
    times, more = FireTimes(spec).latest(begin - tick, end - tick, MOST_BACKFILLED)
    if more:
        raise UsageError(f"the span has more than {MOST_BACKFILLED} fire times", hint="take shorter ones in turn")
    return times


def _redacted(plan: Plan, context: Any) -> Any:
    return Redactor(plan).context(context) if plan.input_schema and marks(plan.input_schema) else context


def _state(row: Mapping[str, Any]) -> str:
    if row["removed"]:
        return "removed"
    if row["paused"] is not None:
        return "paused"
    return "ended" if row["next_at"] is None and (row["due_at"] is None or row["queued"]) else "active"


LATE_SECONDS = 60
"""Time after which a fire is late: then it is handled as a missed one."""


def _sentence(row: Mapping[str, Any], state: str) -> str:
    """Say when the schedule fires next, or why it does not, and why it did not fire the last time."""
    sentences = [_next_fire(row, state)]
    if state == "active":
        if not row["alive"]:
            sentences.append("no process is at work that could fire it: start a worker or an orchestrator")
        elif row["due_at"] and (_time(row["now"]) - _time(row["due_at"])).total_seconds() > LATE_SECONDS:
            sentences.append("it is overdue: the processes at work are too busy, or their role may not create tasks")
    if why := _not_fired(row["last"], row["spec"]):
        sentences.append(why)
    return "; ".join(sentences)


def _not_fired(last: Mapping[str, Any] | None, spec: Mapping[str, Any]) -> str:
    """Say why the last fire time has no task; empty if it has one."""
    if last is None or last["outcome"] == "fired":
        return ""
    detail, fire = last["detail"] or {}, f"the fire time {_shown(last['fire_at'])}"
    if last["outcome"] == "skipped":
        running = f": {detail['running']}" if detail.get("running") else f" (overlap: {spec.get('overlap', 'skip')})"
        return f"{fire} was skipped, because a task was open{running}"
    if last["outcome"] == "missed":
        others = f" and {detail['count'] - 1} before it were" if detail.get("count", 1) > 1 else " was"
        return f"{fire}{others} missed, because no process was at work (missed_fire: {spec.get('missed_fire', 'once')})"
    return f"{fire} was refused: {str(detail.get('error', 'its task could not be submitted')).splitlines()[0]}"


def _next_fire(row: Mapping[str, Any], state: str) -> str:
    waits = f"; {row['queued']} wait until an open task ends" if row["queued"] and state == "active" else ""
    if state == "removed":
        return f"its template no longer declares it since version {row['version']}"
    if state == "paused":
        pause = row["paused"]
        because = f": {pause['reason']}" if pause["reason"] else ""
        return f"paused by {pause['actor'] or 'unknown'} since {_shown(pause['at'])}{because}"
    if state == "ended":
        return "it has no fire times any more" + waits
    if row["next_at"] is None:
        return "its next fire time is computed by the next process that keeps the time" + waits
    return f"fires next at {_shown(row['next_at'])}{waits}"


def _fire(row: Mapping[str, Any]) -> ScheduleFire:
    times = {key: _time(row[key]) for key in ("fire_at", "decided_at")}
    return ScheduleFire(**{**row, **times})


def _checked(moment: datetime | None, name: str) -> datetime | None:
    try:
        return None if moment is None else with_zone(moment)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def _shown(text: str) -> str:
    return _time(text).strftime("%Y-%m-%d %H:%M:%S UTC")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)

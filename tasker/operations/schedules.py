"""Operations of schedules and their fires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from tasker.operations.operation import Body, Endpoint, Param, Parts, RemoteService
from tasker.operations.permissions import Permission
from tasker.operations.steps import Why
from tasker.views.schedules import (
    Backfill,
    Schedule,
    ScheduleChange,
    ScheduleFire,
    TriggeredTask,
    UpcomingFire,
    parts_of,
)

SCHEDULES = "/v1/schedules"
SCHEDULE = SCHEDULES + "/{namespace}/{template}/{name}"
Address = Annotated[str, Parts(("namespace", "template", "name"), parts_of, Param(min_length=1, max_length=255))]
Name = Annotated[str | None, Param(max_length=255)]
Actor = Annotated[str | None, Param(min_length=1, max_length=255)]
ACTION = Body("ScheduleActionRequest", "Reason and actor of an action.")


class ScheduleOperations:
    """Operations of schedules, as clients have them. A schedule is named `namespace/template/name`."""

    @Endpoint("GET", SCHEDULES, Permission.SCHEDULES_READ, "schedules.list", confines=True)
    async def list_schedules(
        self,
        *,
        namespace: Name = None,
        template: Name = None,
        after: Annotated[
            str, Param(max_length=800, description="The last one of the page before: `ns/template/name`.")
        ] = "",
        limit: Annotated[int, Param(at_least=1, at_most=500)] = 100,
    ) -> Sequence[Schedule]:
        """Return schedules by namespace, template and name, without the context of their tasks."""

    @Endpoint(
        "POST",
        SCHEDULES,
        Permission.SCHEDULES_CHANGE,
        "schedules.create",
        confines=True,
        operates=True,
        body=Body(
            "CreateScheduleRequest",
            "Schedule of a registered template; `schedule` has the keys that it would have in the template.",
        ),
        status=201,
        errors=(404,),
    )
    async def create_schedule(
        self,
        schedule: Address,
        keys: Annotated[
            Mapping[str, Any],
            Param("schedule", description='Its keys, such as `{"cron": "0 2 * * *", "timezone": "Europe/Berlin"}`.'),
        ],
        *,
        version: Annotated[
            str | None,
            Param(
                min_length=1,
                max_length=255,
                description="Without one the version that was registered last, at each fire.",
            ),
        ] = None,
        overwrite: Annotated[
            bool, Param(description="Replace a schedule of that name that was created like this.")
        ] = False,
        actor: Actor = None,
    ) -> Schedule:
        """Create a schedule of a registered template. 400 if it exists, or if the template declares it.

        Raises `UsageError` for keys with a mistake, `TemplateNotFound`, `InputInvalid` for a context that does not fit
        the template, and `StateMachineError` if it exists.
        """

    @Endpoint("GET", SCHEDULE, Permission.SCHEDULES_READ, "schedules.get", confines=True, errors=(404,))
    async def get_schedule(self, schedule: Address) -> Schedule:
        """Return one schedule with the context of its tasks, in which sensitive values are redacted.

        Raises `ScheduleNotFound`.
        """

    @Endpoint(
        "DELETE",
        SCHEDULE,
        Permission.SCHEDULES_CHANGE,
        "schedules.delete",
        confines=True,
        operates=True,
        errors=(404,),
    )
    async def delete_schedule(self, schedule: Address, *, reason: Why = "", actor: Name = None) -> ScheduleChange:
        """Delete a schedule with its history; its tasks stay. 400 while a template declares it.

        Raises `ScheduleNotFound`, and `StateMachineError` while a template declares it.
        """

    @Endpoint(
        "GET", SCHEDULE + "/upcoming", Permission.SCHEDULES_READ, "schedules.upcoming", confines=True, errors=(404,)
    )
    async def list_upcoming_fires(
        self,
        schedule: Address,
        *,
        count: Annotated[int, Param(at_least=1, at_most=100)] = 10,
        after: Annotated[datetime | None, Param(form="zoned", description="Without one: now.")] = None,
    ) -> Sequence[UpcomingFire]:
        """Return the next fire times, in UTC and in the zone of the schedule. A pause does not change them.

        Raises `ScheduleNotFound`.
        """

    @Endpoint("GET", SCHEDULE + "/fires", Permission.SCHEDULES_READ, "schedules.fires", confines=True, errors=(404,))
    async def list_fires(
        self,
        schedule: Address,
        *,
        limit: Annotated[int, Param(at_least=1, at_most=500)] = 50,
        before: Annotated[datetime | None, Param(form="zoned", description="Only earlier fire times.")] = None,
    ) -> Sequence[ScheduleFire]:
        """Return fires, the newest first, with what became of each.

        Raises `ScheduleNotFound`.
        """

    @Endpoint(
        "POST",
        SCHEDULE + "/pause",
        Permission.SCHEDULES_CHANGE,
        "schedules.pause",
        confines=True,
        operates=True,
        body=ACTION,
        errors=(404,),
    )
    async def pause_schedule(self, schedule: Address, *, reason: Why = "", actor: Actor = None) -> ScheduleChange:
        """Pause a schedule: it submits nothing until it is resumed. Open tasks continue.

        Raises `ScheduleNotFound`.
        """

    @Endpoint(
        "POST",
        SCHEDULE + "/resume",
        Permission.SCHEDULES_CHANGE,
        "schedules.resume",
        confines=True,
        operates=True,
        body=ACTION,
        errors=(404,),
    )
    async def resume_schedule(self, schedule: Address, *, reason: Why = "", actor: Actor = None) -> ScheduleChange:
        """End a pause. Fire times of the pause get no tasks; a backfill submits them.

        Raises `ScheduleNotFound`.
        """

    @Endpoint(
        "POST",
        SCHEDULE + "/trigger",
        Permission.SCHEDULES_CHANGE,
        "schedules.trigger",
        confines=True,
        operates=True,
        body=ACTION,
        status=201,
        errors=(404, 409),
    )
    async def trigger_schedule(self, schedule: Address, *, reason: Why = "", actor: Actor = None) -> TriggeredTask:
        """Submit a task of the schedule now, also while it is paused or has an open task.

        Raises `ScheduleNotFound`, and the errors of a submission.
        """

    @Endpoint(
        "POST",
        SCHEDULE + "/backfill",
        Permission.SCHEDULES_CHANGE,
        "schedules.backfill",
        confines=True,
        operates=True,
        unless="dry_run",
        body=Body("BackfillRequest", "Span of a backfill: fire times from `begin` until before `end`."),
        errors=(404,),
    )
    async def backfill_schedule(
        self,
        schedule: Address,
        begin: Annotated[datetime, Param(form="zoned")],
        end: Annotated[datetime, Param(form="zoned")],
        *,
        dry_run: Annotated[bool, Param(description="Return the fire times and change nothing.")] = False,
        reason: Why = "",
        actor: Actor = None,
    ) -> Backfill:
        """Submit the tasks of past fire times that have none, one after the other. `dry_run` only returns the times.

        Raises `ScheduleNotFound`, and `UsageError` for more than 500 fire times and for a span that is not past.
        """


class RemoteSchedules(RemoteService):
    """Schedules of a server, under the names of `tasker.services.schedules.Schedules`."""

    list = ScheduleOperations.list_schedules
    get = ScheduleOperations.get_schedule
    fires = ScheduleOperations.list_fires
    upcoming = ScheduleOperations.list_upcoming_fires
    create = ScheduleOperations.create_schedule

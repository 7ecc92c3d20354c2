"""Operations of processes, handlers, queues, pauses and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from tasker.operations.operation import Body, Endpoint, Param, RemoteService, Wrapped
from tasker.operations.permissions import Permission
from tasker.views.fleet import (
    BrokerReport,
    DoctorReport,
    HandlerInfo,
    LimitUse,
    Paused,
    PauseList,
    RecordedAction,
    Resumed,
    WorkerInfo,
)
from tasker.views.overview import Overview

Name = Annotated[str | None, Param(max_length=255)]
Target = Annotated[str | None, Param(min_length=1, max_length=255)]
Namespace = Annotated[str, Param(max_length=255)]
LIMIT_KEYS = 20
"""Number of keys of each limit in a list."""
HANDLERS = Wrapped("handlers", "HandlerListResponse", "Handlers sorted by name.")


class FleetOperations:
    """Operations of the fleet, as clients have them."""

    @Endpoint(
        "GET",
        "/v1/workers",
        Permission.SYSTEM_HANDLERS_READ,
        "workers.list",
        wrapped=Wrapped("workers", "WorkerListResponse", "Processes, live ones first."),
    )
    async def list_workers(
        self, *, stopped: Annotated[bool, Param(description="Also those that have ended.")] = False
    ) -> Sequence[WorkerInfo]:
        """Return every registered process, as `tasker worker list` shows it."""

    @Endpoint("GET", "/v1/handlers", Permission.SYSTEM_HANDLERS_READ, "workers.handlers", wrapped=HANDLERS)
    async def list_handlers(self) -> Sequence[HandlerInfo]:
        """Return the handlers loaded by live workers."""

    @Endpoint("GET", "/v1/handlers/{namespace}", Permission.SYSTEM_HANDLERS_READ, "workers.handlers", wrapped=HANDLERS)
    async def list_handlers_of(self, namespace: Namespace) -> Sequence[HandlerInfo]:
        """Return the handlers of live workers that serve a namespace."""

    @Endpoint(
        "GET", "/v1/handlers/{namespace}/{name}", Permission.SYSTEM_HANDLERS_READ, "workers.handlers", wrapped=HANDLERS
    )
    async def get_handler(
        self, namespace: Namespace, name: Annotated[str, Param(max_length=500)]
    ) -> Sequence[HandlerInfo]:
        """Return one handler with the live workers of the namespace that have it; an empty list if none has."""

    @Endpoint("GET", "/v1/queues", Permission.SYSTEM_ANALYTICS_READ, "queues.report")
    async def list_queues(self) -> BrokerReport:
        """Return the provider's queues and the numbers that the database expects in them."""

    @Endpoint(
        "GET",
        "/v1/limits",
        Permission.SYSTEM_ANALYTICS_READ,
        "limits.list",
        wrapped=Wrapped("limits", "LimitListResponse", "Limits, by name."),
    )
    async def list_limits(
        self,
        name: Annotated[str | None, Param(max_length=1000, description="Only this limit.")] = None,
        *,
        keys: Annotated[int, Param(at_least=1, at_most=1000)] = LIMIT_KEYS,
    ) -> Sequence[LimitUse]:
        """Return the limits of what runs at the same time, by name: what runs and waits under each.

        The keys for which steps wait come first. They are parts of inputs and results: null for callers who may not
        read sensitive values (`data:read_sensitive`).
        """

    @Endpoint("GET", "/v1/overview", Permission.SYSTEM_ANALYTICS_READ, "fleet.overview")
    async def overview(self) -> Overview:
        """Return queues, processes, open breakers and templates, as `tasker top` shows them."""

    @Endpoint("GET", "/v1/doctor", Permission.SYSTEM_ANALYTICS_READ, "doctor.findings")
    async def doctor(self) -> DoctorReport:
        """Return problems of the fleet and its database, as `tasker doctor` shows them. Reads all open tasks."""

    @Endpoint("GET", "/v1/pauses", Permission.SYSTEM_PAUSES_READ, "pauses.list")
    async def list_pauses(self, *, log: Annotated[int, Param(at_least=0, at_most=1000)] = 20) -> PauseList:
        """Return the pauses with the work that each holds back. The log has who paused and resumed what, newest
        first."""

    @Endpoint(
        "POST",
        "/v1/pauses",
        Permission.SYSTEM_PAUSES_CHANGE,
        "pauses.pause",
        confines=True,
        operates=True,
        body=Body(
            "PauseRequest",
            "Target to pause: one of namespace, template (`NS/NAME`), step (`NS/NAME/STEP`), task and queue.",
        ),
        errors=(404,),
    )
    async def pause(
        self,
        *,
        namespace: Target = None,
        template: Target = None,
        step: Target = None,
        task: Target = None,
        queue: Target = None,
        reason: Annotated[str, Param(max_length=1024)] = "",
        actor: Target = None,
    ) -> Paused:
        """Pause a target: nothing more of it starts. `paused` is false if it was paused already.

        Raises `TaskNotFound`, `StateMachineError` for a task that has ended, `UsageError` for an unknown target.
        """

    @Endpoint(
        "DELETE",
        "/v1/pauses",
        Permission.SYSTEM_PAUSES_CHANGE,
        "pauses.resume",
        confines=True,
        operates=True,
        errors=(404,),
    )
    async def resume(
        self,
        *,
        namespace: Name = None,
        template: Name = None,
        step: Name = None,
        task: Name = None,
        queue: Name = None,
        reason: Annotated[str, Param(max_length=1024)] = "",
        actor: Name = None,
    ) -> Resumed:
        """End a pause. `held` is the number of ready steps or messages that continue; null if it was not paused.

        Raises `TaskNotFound`, `UsageError` for an unknown target.
        """

    @Endpoint(
        "GET",
        "/v1/operator_actions",
        Permission.SYSTEM_ACTIONS_READ,
        "operator_log.list",
        wrapped=Wrapped("actions", "OperatorActionListResponse", "Operator actions, newest first."),
    )
    async def list_operator_actions(
        self,
        *,
        actor: Name = None,
        since: Annotated[datetime | None, Param(description="Asked for at that time or later.")] = None,
        limit: Annotated[int, Param(at_least=1, at_most=1000)] = 50,
    ) -> Sequence[RecordedAction]:
        """Return the audit log: operator actions over HTTP and by commands on the database, newest first."""


class RemoteWorkers(RemoteService):
    """Processes of a server's fleet, under the names of `tasker.services.fleet.overview.Workers`."""

    list = FleetOperations.list_workers


class RemoteQueues(RemoteService):
    """Queues of a server, under the names of `tasker.services.fleet.brokers.Queues`."""

    report = FleetOperations.list_queues


class RemoteLimits(RemoteService):
    """Limits of a server, under the names of `tasker.services.fleet.limits.Limits`."""

    list = FleetOperations.list_limits


class RemoteOverview(RemoteService):
    """Overview of a server's fleet, under the names of `tasker.services.fleet.overview.FleetOverview`."""

    overview = FleetOperations.overview

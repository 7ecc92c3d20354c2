"""Operations of domain events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from tasker.operations.operation import Body, Endpoint, Param
from tasker.operations.permissions import Permission
from tasker.template.names import MAX_POSITION
from tasker.views.events import EventList, RewindResult, SubscriberStatus
from tasker.views.incoming_events import IncomingEvent, SentEvent

EVENTS = "/v1/events"
SUBSCRIBERS = EVENTS + "/subscribers"
Identifier = Annotated[str | None, Param(form="uuid")]


class EventOperations:
    """Operations of domain events, as clients have them."""

    @Endpoint("GET", EVENTS, Permission.TASKS_LIST, "domain_events.page", confines=True)
    async def list_events(
        self,
        *,
        names: Annotated[
            Sequence[str],
            Param(
                "name",
                max_length=20,
                description="Repeatable: patterns of event names, of which one must match; `*` matches anything.",
            ),
        ] = (),
        namespace: Annotated[str | None, Param(max_length=255)] = None,
        task: Identifier = None,
        correlation_id: Identifier = None,
        since: datetime | None = None,
        after: Annotated[
            int | None, Param(at_least=0, at_most=MAX_POSITION, description="Only events after this `position`.")
        ] = None,
        limit: Annotated[int, Param(at_least=1, at_most=1000)] = 50,
        newest: Annotated[bool, Param(description="Return the newest events instead of the oldest.")] = False,
        withheld: Annotated[bool, Param(description="Declared events that were not published, and why.")] = False,
    ) -> EventList:
        """Return durable domain events by `position`, which preserves the order of each task's events.

        If a page has fewer events than `limit`, continue from `last`: no matching event will appear before it.
        """

    @Endpoint(
        "POST",
        EVENTS,
        Permission.EVENTS_SEND,
        "incoming_events.send",
        confines=True,
        body=Body("SendEventRequest", "Event for the steps that wait for its name and key."),
        status=201,
    )
    async def send_event(
        self,
        namespace: Annotated[str, Param(max_length=255)],
        name: Annotated[str, Param(max_length=255, description="Name of the event, such as `payment.settled`.")],
        payload: Any = None,
        *,
        key: Annotated[str, Param(max_length=200, description="Only steps that wait with this key take it.")] = "",
        dedupe_id: Annotated[
            str | None,
            Param(min_length=1, max_length=200, description="A second event of this name with it is dropped."),
        ] = None,
        exclusive: Annotated[bool, Param(description="Only one waiting step takes it.")] = False,
        keep: Annotated[
            str, Param(max_length=32, description="How long steps that wait later can take it: `36h`, `7d`.")
        ] = "7d",
    ) -> SentEvent:
        """Send an event to the steps of a namespace that wait for it, or will.

        Raises `UsageError` for an unknown namespace and invalid values.
        """

    @Endpoint("GET", EVENTS + "/incoming", Permission.TASKS_LIST, "incoming_events.list", confines=True)
    async def list_incoming_events(
        self,
        *,
        namespace: Annotated[str | None, Param(max_length=255)] = None,
        name: Annotated[str | None, Param(max_length=255)] = None,
        key: Annotated[str | None, Param(max_length=200)] = None,
        limit: Annotated[int, Param(at_least=1, at_most=1000)] = 50,
    ) -> Sequence[IncomingEvent]:
        """Return the events that were sent to waiting steps, newest first, without their payloads."""

    @Endpoint("GET", SUBSCRIBERS, Permission.SYSTEM_ANALYTICS_READ, "domain_events.subscribers")
    async def list_event_subscribers(self) -> Sequence[SubscriberStatus]:
        """Return the position of each subscriber."""

    @Endpoint(
        "POST",
        SUBSCRIBERS + "/{name}/replay",
        Permission.STEPS_RESOLVE,
        "domain_events.replay",
        operates=True,
        body=Body(
            "ReplayEventsRequest", "Position or time from which a subscriber reads again; exactly one of the two."
        ),
    )
    async def replay_events(
        self,
        name: Annotated[str, Param(max_length=128)],
        *,
        after: Annotated[
            int | None, Param(at_least=0, at_most=MAX_POSITION, description="Replay events after this position.")
        ] = None,
        since: Annotated[datetime | None, Param(description="Replay events published at this time or later.")] = None,
    ) -> RewindResult:
        """Move a subscriber back to a position or a time, so that it reads the later events again.

        Raises `UsageError` for an unknown subscriber, and without exactly one of the two.
        """

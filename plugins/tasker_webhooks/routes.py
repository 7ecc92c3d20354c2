"""Routes of endpoints below `/plugins/webhooks`."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from tasker.server.plugin_routes import Permission, actor_of, needs, plugin_router, program_of
from tasker.services.event_subscriptions import Delivery
from tasker_webhooks.endpoints import Endpoints, EndpointsHere, EndpointStatus, Replayed, Switched, Tested
from tasker_webhooks.table import WebhooksTable

READS = needs(Permission.SYSTEM_ANALYTICS_READ)
POSTS = needs(Permission.STEPS_RESOLVE, operates=True)
STEERS = needs(Permission.SYSTEM_PAUSES_CHANGE, operates=True)


class Wanted(BaseModel):
    """Events to post again; an empty list means all that were given up."""

    model_config = ConfigDict(extra="forbid")
    events: list[str] = Field(default_factory=list, max_length=1000)


class Enabling(BaseModel):
    """Actor of the action, if the caller is not authenticated by a key or token."""

    model_config = ConfigDict(extra="forbid")
    actor: str | None = Field(None, max_length=255)


class Disabling(Enabling):
    """Actor and reason; the reason is shown while nothing is sent."""

    reason: str = Field("by hand", max_length=2000)


def endpoint_routes(settings: WebhooksTable) -> APIRouter:
    """Return the routes about these endpoints."""
    router = plugin_router(tag="webhooks")

    def of(request: Request) -> Endpoints:
        return EndpointsHere(settings, program_of(request).domain_events)

    # URLs may have secret paths, so listing them requires the permission to read the configuration.
    @router.get("/endpoints", **needs(Permission.SYSTEM_CONFIG_READ))
    async def list_webhook_endpoints(request: Request) -> Sequence[EndpointStatus]:
        """List the endpoints and their progress."""
        return await of(request).list()

    @router.get("/endpoints/{name}/aside", **READS)
    async def list_events_not_taken(request: Request, name: str) -> Sequence[Delivery]:
        """List the events that an endpoint has not accepted, the last tried first."""
        return await of(request).aside(name)

    @router.post("/endpoints/{name}/test", **POSTS)
    async def test_webhook_endpoint(request: Request, name: str) -> Tested:
        """Post an event named `tasker.webhook.test` from the server."""
        return await of(request).test(name)

    @router.post("/endpoints/{name}/replay", **POSTS)
    async def replay_to_webhook_endpoint(request: Request, name: str, body: Wanted) -> Replayed:
        """Post events again that were given up."""
        return await of(request).replay(name, body.events)

    @router.post("/endpoints/{name}/disable", **STEERS)
    async def disable_webhook_endpoint(request: Request, name: str, body: Disabling) -> Switched:
        """Stop sending to an endpoint; its events wait."""
        return await of(request).disable(name, actor=actor_of(request, body.actor), reason=body.reason)

    @router.post("/endpoints/{name}/enable", **STEERS)
    async def enable_webhook_endpoint(request: Request, name: str, body: Enabling) -> Switched:
        """Resume sending to an endpoint, including the events that have waited."""
        return await of(request).enable(name, actor=actor_of(request, body.actor))

    return router

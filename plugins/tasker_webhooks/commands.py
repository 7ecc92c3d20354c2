"""Commands of `tasker webhook`: the state of endpoints, and operator actions on them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, TypeVar, cast

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.render.values import table
from tasker.cli.target import DatabaseTarget, FleetTarget, fleet_options, run_on_fleet
from tasker.errors import UsageError
from tasker_webhooks.endpoints import Endpoints, EndpointsHere, EndpointStatus, Replayed, Switched, Tested, tested

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.cli.remote.fleet import Fleet
    from tasker.services.event_subscriptions import Delivery
    from tasker_webhooks.table import WebhooksTable

T = TypeVar("T")
ENDPOINT = click.argument("endpoint", metavar="ENDPOINT")


class WebhookGroup(click.Group):
    """Group that exists before the plugin is enabled, for its command `secret`."""

    works_without_settings = True


def webhook(settings: WebhooksTable | None) -> click.Group:
    """Return the commands about the endpoints of these settings, or of a server's."""
    return WebhookGroup(
        "webhook",
        commands=[list_, test, replay, disable, enable, secret],
        help="Endpoints that durable events are posted to.",
        context_settings={"obj": settings},  # the first parameter of each command
    )


@click.command("list")
@click.argument("endpoint", metavar="[ENDPOINT]", required=False)
@FORMAT
@fleet_options
@click.pass_obj
def list_(settings: WebhooksTable | None, endpoint: str | None, form: str, place: FleetTarget) -> None:
    """List the endpoints; or, of one, the events that it has not taken.

    \b
    Examples:
      tasker webhook list
      tasker webhook list billing --format json
    """
    if endpoint is None:
        print_as(form, _asked(settings, place, lambda endpoints: endpoints.list()), _status_text)
    else:
        print_as(form, _asked(settings, place, lambda endpoints: endpoints.aside(endpoint)), _failed_text)


@click.command()
@ENDPOINT
@FORMAT
@fleet_options
@click.pass_obj
def test(settings: WebhooksTable | None, endpoint: str, form: str, place: FleetTarget) -> None:
    """Post an event of the name `tasker.webhook.test`, from here or from the server that is asked.

    Exit code 1 when it is not taken.
    """
    if isinstance(place, DatabaseTarget):  # nothing of a fleet is read or changed
        done = asyncio.run(tested(_configured(settings), endpoint))
    else:
        done = _asked(settings, place, lambda endpoints: endpoints.test(endpoint))
    print_as(form, done, _tested_text)
    click.get_current_context().exit(0 if done.taken else 1)


@click.command()
@ENDPOINT
@click.argument("events", metavar="[EVENT_ID]...", nargs=-1)
@FORMAT
@fleet_options
@click.pass_obj
def replay(
    settings: WebhooksTable | None, endpoint: str, events: tuple[str, ...], form: str, place: FleetTarget
) -> None:
    """Post events again that were given up: all, or these.

    What was taken before is posted again by `tasker events replay webhook:ENDPOINT --since 2h`.
    """
    done = _asked(settings, place, lambda endpoints: endpoints.replay(endpoint, events), operates=True)
    print_as(form, done, _replayed_text)


@click.command()
@ENDPOINT
@click.option("--reason", default="by hand", show_default=True, help="Reason, shown in the status of the endpoint.")
@FORMAT
@fleet_options
@click.pass_obj
def disable(settings: WebhooksTable | None, endpoint: str, reason: str, form: str, place: FleetTarget) -> None:
    """Send nothing to it; events wait until it is enabled."""
    done = _asked(
        settings, place, lambda endpoints: endpoints.disable(endpoint, actor=actor(), reason=reason), operates=True
    )
    print_as(form, done, _switched_text)


@click.command()
@ENDPOINT
@FORMAT
@fleet_options
@click.pass_obj
def enable(settings: WebhooksTable | None, endpoint: str, form: str, place: FleetTarget) -> None:
    """Send to it again, what has come meanwhile too."""
    done = _asked(settings, place, lambda endpoints: endpoints.enable(endpoint, actor=actor()), operates=True)
    print_as(form, done, _switched_text)


@click.command()
@FORMAT
def secret(form: str) -> None:
    """Print a new secret. Put it before the old one, tell the receiver, and take the old one out later."""
    from tasker_webhooks.signing import new_secret

    print_as(form, {"secret": new_secret()}, lambda made: made["secret"])


def _configured(settings: WebhooksTable | None) -> WebhooksTable:
    if settings is None:
        from tasker.cli.switched_off import describe_disabled_command

        raise UsageError(
            describe_disabled_command("webhook") or "the plugin webhooks is not enabled",
            hint="see `tasker plugin list`",
        )
    return settings


def _asked(
    settings: WebhooksTable | None,
    place: FleetTarget,
    use: Callable[[Endpoints], Awaitable[T]],
    *,
    operates: bool = False,
) -> T:
    table = _configured(settings)
    return run_on_fleet(place, lambda fleet: use(_endpoints_of(fleet, table)), operates=operates)


def _endpoints_of(fleet: Fleet, settings: WebhooksTable) -> Endpoints:
    from tasker.cli.remote.http_fleet import HttpFleet

    if isinstance(fleet, HttpFleet):
        from tasker_webhooks.over_http import HttpEndpoints

        return HttpEndpoints(fleet.client)
    return EndpointsHere(settings, cast("App", fleet).domain_events)


def _status_text(endpoints: Sequence[EndpointStatus]) -> str:
    if not endpoints:
        return "no endpoints; add one under [[plugins.webhooks.endpoints]]"
    rows = [
        (
            endpoint.name,
            endpoint.state + (f" ({endpoint.reason})" if endpoint.reason else ""),
            f"{endpoint.behind:,}",
            f"{endpoint.waiting:,}",
            f"{endpoint.given_up:,}",
            " ".join(endpoint.events),
            endpoint.url,
        )
        for endpoint in endpoints
    ]
    return table(("endpoint", "state", "behind", "waiting", "given up", "events", "url"), rows)


def _failed_text(deliveries: Sequence[Delivery]) -> str:
    if not deliveries:
        return "no failed deliveries"
    rows = [
        (delivery.event_id, delivery.event_name, str(delivery.attempts), _due(delivery), delivery.error)
        for delivery in deliveries
    ]
    return table(("event", "name", "attempts", "again", "error"), rows)


def _due(delivery: Delivery) -> str:
    return delivery.due_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if delivery.due_at else "given up"


def _tested_text(done: Tested) -> str:
    return (
        f"{done.endpoint} accepted the test event"
        if done.taken
        else f"{done.endpoint} rejected the test event: {done.error}"
    )


def _replayed_text(done: Replayed) -> str:
    return f"{done.events:,} events will be sent again"


def _switched_text(done: Switched) -> str:
    return "done" if done.changed else "no change"

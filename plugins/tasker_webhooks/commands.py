"""`tasker webhook`: how endpoints do, and what a person does about them."""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, connected, print_as
from tasker.cli.options import Database, database_options
from tasker.cli.render.table import table
from tasker.errors import UsageError
from tasker_webhooks.sending import SUBSCRIBER
from tasker_webhooks.table import Endpoint, WebhooksTable

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.services.domain_events.deliveries import Delivery
    from tasker.services.domain_events.values import SubscriberStatus


@dataclass(frozen=True)
class EndpointStatus:
    """An endpoint, and how far it is. `state`: `on`, `off` by its settings, `stopped` with the reason, or `new`."""

    name: str
    url: str
    events: Sequence[str]
    state: str
    reason: str
    behind: int
    waiting: int
    given_up: int


def webhook(settings: WebhooksTable) -> click.Group:
    """The commands about these endpoints."""
    known = {each.name: each for each in settings.endpoints}

    def named(ctx: click.Context, param: click.Parameter, name: str | None) -> Endpoint | None:
        if name is not None and name not in known:
            hint = f"there are {', '.join(known)}" if known else "none is configured under plugins.webhooks.endpoints"
            raise UsageError(f"there is no endpoint {name!r}", hint=hint)
        return known[name] if name else None

    def one(command: Callable[..., Any], required: bool = True) -> Callable[..., Any]:
        return click.argument("endpoint", metavar="ENDPOINT", required=required, callback=named)(command)

    @click.group("webhook")
    def group() -> None:
        """Endpoints that durable events are posted to."""

    @group.command("list")
    @click.argument("endpoint", metavar="[ENDPOINT]", required=False, callback=named)
    @FORMAT
    @database_options
    def list_(endpoint: Endpoint | None, form: str, database: Database) -> None:
        """List the endpoints; or, of one, the events that it has not taken.

        \b
        Examples:
          tasker webhook list
          tasker webhook list billing --format json
        """
        if endpoint is None:
            print_as(form, connected(database, lambda app: _status(app, settings)), _status_text)
        else:
            name = SUBSCRIBER + endpoint.name
            print_as(form, connected(database, lambda app: app.domain_events.deliveries.list(name, limit=200)), _aside)

    @group.command()
    @one
    @FORMAT
    def test(endpoint: Endpoint, form: str) -> None:
        """Post an event of the name `tasker.webhook.test` from here. Exit code 1 when it is not taken."""
        import asyncio

        error = asyncio.run(_tested(endpoint, settings))
        print_as(form, {"endpoint": endpoint.name, "taken": not error, "error": error}, _tested_text)
        click.get_current_context().exit(1 if error else 0)

    @group.command()
    @one
    @click.argument("events", metavar="[EVENT_ID]...", nargs=-1)
    @FORMAT
    @database_options
    def replay(endpoint: Endpoint, events: tuple[str, ...], form: str, database: Database) -> None:
        """Post events again that were given up: all, or these.

        What was taken before is posted again by `tasker events replay webhook:ENDPOINT --since 2h`.
        """
        name = SUBSCRIBER + endpoint.name
        count = connected(database, lambda app: app.domain_events.deliveries.retry(name, events or None), operates=True)
        print_as(
            form,
            {"endpoint": endpoint.name, "events": count},
            lambda done: f"{done['events']:,} events are posted again",
        )

    @group.command()
    @one
    @click.option("--reason", default="by hand", show_default=True, help="Shown to whoever asks why nothing is sent.")
    @FORMAT
    @database_options
    def disable(endpoint: Endpoint, reason: str, form: str, database: Database) -> None:
        """Send nothing to it; events wait until it is enabled."""
        _switch(
            form,
            endpoint,
            database,
            lambda app, name: app.domain_events.deliveries.stop(name, by=_user(), reason=reason),
        )

    @group.command()
    @one
    @FORMAT
    @database_options
    def enable(endpoint: Endpoint, form: str, database: Database) -> None:
        """Send to it again, what has come meanwhile too."""
        _switch(form, endpoint, database, lambda app, name: app.domain_events.deliveries.resume(name, by=_user()))

    @group.command()
    @FORMAT
    def secret(form: str) -> None:
        """Print a new secret. Put it before the old one, tell the receiver, and take the old one out later."""
        from tasker_webhooks.signing import new_secret

        print_as(form, {"secret": new_secret()}, lambda made: made["secret"])

    return group


def _switch(form: str, endpoint: Endpoint, database: Database, act: Callable[[App, str], Awaitable[bool]]) -> None:
    changed = connected(database, lambda app: act(app, SUBSCRIBER + endpoint.name), operates=True)
    print_as(
        form,
        {"endpoint": endpoint.name, "changed": changed},
        lambda done: "done" if done["changed"] else "it was so already",
    )


async def _status(app: App, settings: WebhooksTable) -> list[EndpointStatus]:
    found = {each.name: each for each in await app.domain_events.subscribers()}
    return [_described(each, found.get(SUBSCRIBER + each.name)) for each in settings.endpoints]


def _described(endpoint: Endpoint, found: SubscriberStatus | None) -> EndpointStatus:
    stopped = found.stopped if found else None
    state = "off" if not endpoint.enabled else "stopped" if stopped else "on" if found else "new"
    reason = f"{stopped['by']}: {stopped['reason']}" if stopped else ""
    counts = (found.behind, found.waiting, found.given_up) if found else (0, 0, 0)
    return EndpointStatus(endpoint.name, endpoint.url.partition("?")[0], endpoint.events, state, reason, *counts)


def _status_text(found: Sequence[EndpointStatus]) -> str:
    if not found:
        return "no endpoint: write one under [[plugins.webhooks.endpoints]]"
    rows = [
        (each.name, each.state + (f" ({each.reason})" if each.reason else ""), f"{each.behind:,}", f"{each.waiting:,}",
         f"{each.given_up:,}", " ".join(each.events), each.url)
        for each in found
    ]  # fmt: skip
    return table(("endpoint", "state", "behind", "waiting", "given up", "events", "url"), rows)


def _aside(found: Sequence[Delivery]) -> str:
    if not found:
        return "every event was taken, or is still to come"
    rows = [(each.event_id, each.event_name, str(each.attempts), _due(each), each.error) for each in found]
    return table(("event", "name", "attempts", "again", "error"), rows)


def _due(delivery: Delivery) -> str:
    return delivery.due_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if delivery.due_at else "given up"


async def _tested(endpoint: Endpoint, settings: WebhooksTable) -> str:
    import json
    from uuid import uuid4

    from tasker_webhooks.posting import Poster
    from tasker_webhooks.signing import headers

    identity, now = str(uuid4()), datetime.now(UTC)
    event = {
        "specversion": "1.0",
        "id": identity,
        "source": "/tasker",
        "type": "tasker.webhook.test",
        "time": now.isoformat(),
        "data": {},
    }
    body = json.dumps(event).encode()
    signed = headers(identity, int(now.timestamp()), body, endpoint.secrets)
    return (await Poster(settings).post(endpoint.url, body, signed)).error


def _tested_text(done: dict[str, Any]) -> str:
    return (
        f"{done['endpoint']} has not taken it: {done['error']}" if done["error"] else f"{done['endpoint']} has taken it"
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"

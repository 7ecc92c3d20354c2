"""Publishing an event from inside a handler."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, get_args

from tasker.contracts.events.publishing import HandlerEvents, publishing
from tasker.contracts.rules.names import MAX_NAME, NAME, NAME_RULE
from tasker.domain_events.declaration import Condition, DeliveryMode
from tasker.errors import ValidationError

log = logging.getLogger("tasker.domain_events")


def publish_domain_event(
    name: str,
    payload: Mapping[str, Any],
    *,
    condition: Condition = "success",
    delivery_mode: DeliveryMode = "durable",
) -> bool:
    """Publish an event of the step whose handler is running, which its template need not declare.

    The event is deferred until the step's result is accepted and is written together with it, after the events that the
    template declares and in the order of the calls. If the result is rejected or lost, or its outcome does not match
    `condition`, nothing is published. `payload` is a JSON mapping whose current state is used; the events of one result
    are limited to 100 and 1 MiB in total. `delivery_mode` is `durable`, `fast` or `broadcast`; `condition` takes the
    values of `publishes_events`.

    Returns False if the event will not be published because its payload is not JSON or too large, or because no handler
    is running here. The reason is logged and listed by `tasker events list --withheld`; the step continues. Raises
    `ValidationError` for an invalid name, condition or mode.
    """
    return publish_to(publishing.get(), name, payload, condition, delivery_mode)


def publish_to(
    events: HandlerEvents | None, name: object, payload: Mapping[str, Any], condition: str, delivery_mode: str
) -> bool:
    """Add an event to those of a handler call. Raises `ValidationError` for an invalid name, condition or mode."""
    if not isinstance(name, str) or len(name) > MAX_NAME or not re.fullmatch(NAME, name):
        raise ValidationError(f"{name!r:.60} is no name of an event: {NAME_RULE}, at most {MAX_NAME} characters")
    _one_of("condition", condition, get_args(Condition))
    _one_of("delivery_mode", delivery_mode, get_args(DeliveryMode))
    if events is not None:
        return events.publish(name, payload, condition, delivery_mode)
    text = "Failed to publish domain event - step will continue event_name=%s error=%s"
    log.warning(text, name, "no handler is running here; in a thread of your own call context.publish_domain_event")
    return False


def _one_of(what: str, found: object, known: tuple[str, ...]) -> None:
    if found not in known:
        raise ValidationError(f"{found!r:.60} is no {what} of an event; there are {', '.join(known)}")

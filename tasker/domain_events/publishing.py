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

    It is held back until the result is accepted, and written with it: behind those that the template declares, in the
    order of the calls. A result that is refused or lost, and an outcome that is not the `condition`, publish nothing.
    `payload` is a mapping that is JSON, taken as it is now; 100 events of one result may have 1 MiB together.
    `delivery_mode` is `durable`, `fast` or `broadcast`, and `condition` one of those of `publishes_events`.

    Returns False where it will not be published: its payload is no JSON or too large, or no handler is running here.
    The reason is in the log and in `tasker events list --withheld`; the step goes on. Raises `ValidationError`
    for a name, a condition or a mode that no event can have.
    """
    return publish_to(publishing.get(), name, payload, condition, delivery_mode)


def publish_to(
    events: HandlerEvents | None, name: object, payload: Mapping[str, Any], condition: str, delivery_mode: str
) -> bool:
    """Let `events`, those of a call of a handler, take one more. Raises `ValidationError`."""
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

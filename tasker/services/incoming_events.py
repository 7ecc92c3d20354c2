"""Events for steps that wait: sent in a transaction of their own or in the caller's, and listed."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Any, Final, TypedDict, Unpack

from tasker.db.caller_transaction import CallerTransaction, call_in, guarded
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.errors import DatabaseError, UsageError
from tasker.errors.remedies import remedy
from tasker.json_values import encode, require_findable, to_json
from tasker.services.event_matching import EventMatcher
from tasker.services.submission.in_transaction import LOCK_TIMEOUT_SECONDS
from tasker.services.tasks.read import names
from tasker.template.durations import duration_seconds
from tasker.template.names import MAX_NAME, NAME
from tasker.views.incoming_events import IncomingEvent, SentEvent

KEEP: Final = "7d"
"""How long an event is kept for waits that begin later."""
MOST_KEY = 200
MOST_PAYLOAD = 1_000_000
"""Bytes of a payload."""
_log = logging.getLogger("tasker.orchestration")


class SendOptions(TypedDict, total=False):
    """Options of an event.

    `key`: waits with the same key take it; without one, waits without a key. `dedupe_id`: a second event of the same
    name with it is dropped. `exclusive`: only one wait takes it. `keep`: how long it is kept for later waits.
    """

    key: str | int
    dedupe_id: str | None
    exclusive: bool
    keep: timedelta | float | str


class IncomingEvents:
    """Use cases of incoming events. All methods raise `DatabaseError`."""

    def __init__(self, engine: Engine, plans: PlanStore) -> None:
        self._engine, self._matcher = engine, EventMatcher(engine, plans)

    async def send(
        self, namespace: str, name: str, payload: Any = None, *, by: str = "program", **options: Unpack[SendOptions]
    ) -> SentEvent:
        """Send an event to the steps of a namespace that wait for it, or will. Raises `UsageError`, `NotStorable`."""
        args = event_arguments(namespace, name, payload, by=by, **options)
        answer = await self._engine.connection.call("tasker.send_event_v1(%s::jsonb)", to_json(args))
        sent = sent_event(answer, namespace)
        if sent.duplicate:
            return sent
        taken = refused = 0
        try:
            if not (taken := await self._matcher.match(sent.event_uuid)):
                event = {"event": sent.event_uuid}
                ((taken, refused),) = await self._engine.connection.execute(query("events", "waits_of_event"), event)
        except DatabaseError as error:  # the event is stored: an error would have it sent again
            _log.warning("event_not_matched event=%s: left to the timekeeper: %s", sent.event_uuid, error)
        return SentEvent(sent.event_uuid, False, taken, 0 if taken else refused)

    async def list(
        self,
        *,
        namespace: str | None = None,
        name: str | None = None,
        key: str | None = None,
        limit: int = 50,
        namespaces: Collection[str] | None = None,
    ) -> Sequence[IncomingEvent]:
        """Return the newest events, without their payloads. `namespaces` are those permitted; None: all."""
        params = {"namespace": namespace, "name": name, "key": key, "limit": limit, "namespaces": names(namespaces)}
        for word in (namespace, name, key):
            require_findable(word, "filter")
        return [
            IncomingEvent(*row) for row in await self._engine.connection.execute(query("events", "incoming"), params)
        ]


def send_in(
    transaction: CallerTransaction, namespace: str, name: str, payload: Any, lock_timeout: float, **options: Any
) -> SentEvent:
    """Store an event in the caller's transaction; it is matched after the commit, by the timekeeper."""
    args = {**event_arguments(namespace, name, payload, **options), "announce": True}
    with guarded(transaction, lock_timeout):
        answer = call_in(transaction, "tasker.send_event_v1(cast({} as jsonb))", to_json(args))
    return sent_event(answer, namespace)


def prepared(
    namespace: str, name: str, payload: Any, lock_timeout: float = LOCK_TIMEOUT_SECONDS, **options: Any
) -> Callable[[CallerTransaction], SentEvent]:
    """Return a function that sends the event in a transaction."""
    return lambda transaction: send_in(transaction, namespace, name, payload, lock_timeout, **options)


def event_arguments(
    namespace: str,
    name: str,
    payload: Any,
    *,
    key: str | int = "",
    dedupe_id: str | None = None,
    exclusive: bool = False,
    keep: timedelta | float | str = KEEP,
    by: str = "program",
) -> dict[str, Any]:
    """Return the arguments of `tasker.send_event_v1`. Raises `UsageError` for invalid ones, and `NotStorable`."""
    if not re.fullmatch(NAME, name) or len(name) > MAX_NAME:
        raise UsageError(f"invalid event name {name!r:.80}", hint="such as payment.settled: letters, digits, _ - and .")
    if type(key) not in (str, int) or len(str(key)) > MOST_KEY:
        raise UsageError(f"key: expected text of at most {MOST_KEY} characters, got {key!r:.80}")
    if dedupe_id is not None and not 1 <= len(dedupe_id) <= MOST_KEY:
        raise UsageError(f"dedupe_id: expected text of 1 to {MOST_KEY} characters, got {dedupe_id!r:.80}")
    try:
        seconds = duration_seconds(keep)
    except ValueError as error:
        raise UsageError(f"keep: {error}") from None
    if seconds <= 0:
        raise UsageError("keep: expected a duration above 0s", hint=f"leave it out for {KEEP}")
    for word, text in (("namespace", namespace), ("key", str(key)), ("dedupe_id", dedupe_id)):
        require_findable(text, word)
    encoded = encode({} if payload is None else payload)
    if len(encoded.text) > MOST_PAYLOAD:
        raise UsageError(
            f"the payload has {len(encoded.text):,} bytes, at most {MOST_PAYLOAD:,} are possible",
            hint="store the data elsewhere and send where it is",
        )
    return {
        "namespace": namespace,
        "name": name,
        "key": str(key),
        "payload": encoded,
        "exclusive": exclusive,
        "dedupe_id": dedupe_id,
        "keep_ms": round(seconds * 1000),
        "by": by,
    }


def sent_event(answer: dict[str, Any], namespace: str) -> SentEvent:
    """Return what became of the event. Raises `UsageError` if there is no such namespace."""
    if answer.get("missing"):
        belongs = "events belong to the namespace of the templates that wait for them; {} lists them"
        raise UsageError(f"there is no namespace {namespace!r:.80}", hint=remedy(belongs, "tasker template list"))
    return SentEvent(answer["event"], answer["duplicate"], 0)

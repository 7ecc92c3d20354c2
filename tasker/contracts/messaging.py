"""The port that a messaging backend implements (design section 3).

A message is a hint that carries ids only; the row in PostgreSQL is the truth. A backend is chosen by name through the
entry-point group `tasker.backends`; its module offers

- `create(settings: Mapping[str, Any]) -> Backend`,
- `settings_table() -> type[Table]`, when it has settings: what `[common.queues.NAME]` may hold
  (`tasker.contracts.settings`), checked, documented, explained and redacted like every other setting,
- `VARIABLES`, the environment variables that this table names.

The module is imported by every process that asks which variables there are, so it imports its client library and its
table inside of these functions.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from tasker.contracts.dataclasses import dataclass
from tasker.errors import InvalidQueueName, MessagingError

DEFAULT_BACKEND = "pgmq"
"""The backend that is used when nobody names another one: it needs nothing but the engine's database."""
QUEUE_NAME_MAX = 47
"""Characters of a queue name: the least that a backend can carry, kept for every one so that switching is a setting."""

_QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def check_queue_name(queue: str) -> str:
    """The name itself, when every backend can carry it: 1 to 47 of `A-Z a-z 0-9 _ -`, without `--`.

    Raises `InvalidQueueName` that says which rule is broken.
    """
    problem = _queue_name_problem(queue)
    if problem:
        hint = f"use 1 to {QUEUE_NAME_MAX} letters, digits, '_' or single '-'"
        raise InvalidQueueName(f"queue name {queue!r} {problem}", hint=hint)
    return queue


def _queue_name_problem(queue: str) -> str | None:
    if not queue:
        return "is empty"
    if len(queue) > QUEUE_NAME_MAX:
        return f"has {len(queue)} characters, {QUEUE_NAME_MAX} are possible"
    if not _QUEUE_NAME.fullmatch(queue):
        return "holds a character that is not a letter, digit, '_' or '-'"
    return "holds '--'" if "--" in queue else None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do beyond sending and receiving. A claim that is not kept fails the conformance suite."""

    push: bool = False
    """`subscribe_many` yields notifications as messages arrive."""
    transactional: bool = False
    """Messages live in the engine's database and are sent in the transaction that makes them true."""
    native_delay: bool = False
    """`send_message_with_delay` keeps a message invisible until it is due."""
    ack_extend: bool = False
    """`extend_visibility` keeps a received message hidden for longer."""
    fetch_by_id: bool = False
    """`receive_message` takes one message by its id, as a notification names it."""
    fallback_polling: bool = False
    """A push may be lost; poll as well."""
    shared: bool = True
    """Other processes reach the same queues."""


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message that was received and must be acknowledged.

    `payload` is what was sent: JSON may come back with other whitespace and key order, anything else byte by byte.
    `read_count` is 1 the first time it is received and grows by one each time it is received again.
    """

    queue: str
    message_id: int
    payload: bytes
    read_count: int = 1


@dataclass(frozen=True, slots=True)
class MessageAvailable:
    """Notification that a queue has a message; it must still be fetched."""

    queue: str
    message_id: int | None = None


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Depth and age of a queue."""

    queue: str
    depth: int
    """Messages that wait, visible or not."""
    oldest_seconds: float | None
    """Age of the oldest message; None when there is none, or when the provider does not tell without taking it."""
    consumers: int | None = None
    """Who takes messages from it now; None where the provider does not know."""
    unseen: int = 0
    """Messages that others may have received and that `depth` does not count: at most so many."""
    in_flight: int | None = None
    """Of `depth`, those that were received and are not settled; None where the provider does not tell."""


@runtime_checkable
class Backend(Protocol):
    """A messaging provider. All calls raise `tasker.errors.MessagingError` on failure.

    A name that `check_queue_name` refuses raises `InvalidQueueName`; a queue that does not exist raises
    `MessagingError` everywhere but in `create_queue`, `delete_queue` and `queue_exists`. A received message is ours
    until it is acknowledged, given back, or received again by somebody else after its visibility timeout.
    """

    capabilities: Capabilities

    def provider_name(self) -> str:
        """The name it is chosen by, that of its entry point."""
        ...

    async def open(self) -> None:
        """Connect. May be called twice."""
        ...

    async def close(self) -> None:
        """Release connections. May be called twice."""
        ...

    async def health_check(self) -> bool:
        """True when the provider answers."""
        ...

    async def create_queue(self, queue: str) -> None:
        """Make the queue if it does not exist."""
        ...

    async def delete_queue(self, queue: str) -> None:
        """Remove the queue and its messages; nothing happens when it does not exist."""
        ...

    async def queue_exists(self, queue: str) -> bool:
        """True when the queue exists."""
        ...

    async def list_queues(self) -> list[str]:
        """Names of all queues, sorted."""
        ...

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send; returns the message's id."""
        ...

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send many in order; returns their ids."""
        ...

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that becomes visible after the delay."""
        ...

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Up to `limit` visible messages, hidden from others for `visibility_timeout` seconds."""
        ...

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """The message of that id, hidden from others; None when it is gone or somebody else has it (`fetch_by_id`)."""
        ...

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Done with it. False when it was no longer ours."""
        ...

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        """As `ack_message` for each, in as few steps as the provider needs. When it raises, some may be done."""
        ...

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Give it back, visible again after the delay. False when it was no longer ours."""
        ...

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Keep it hidden for `seconds` from now. False when it was no longer ours."""
        ...

    async def queue_stats(self, queue: str) -> QueueStats:
        """Depth and age."""
        ...

    def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable | QueuedMessage, None]:
        """Notifications for these queues until the generator is closed.

        The first notifications are one `MessageAvailable` for each queue: the subscription is live, and messages that
        came
        before it must be looked for. Notifications may be doubled or find nothing.
        """
        ...


class SqlChannel(Protocol):
    """The engine's database as a backend sees it: `db` lends it to `create` under `settings["channel"]`.

    Everything raises a `tasker.errors.TaskerError` on failure, never an error of the driver.
    """

    async def execute(self, statement: str, params: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement with `%s` placeholders in a transaction of its own; returns its rows.

        May be called from several tasks at once.
        """
        ...

    def listen(self, channels: Sequence[str]) -> AbstractAsyncContextManager[AsyncIterator[tuple[str, str]]]:
        """Within it, LISTEN is in effect for every channel; it gives (channel, payload) of each notification.

        The implementation quotes the names. Iterating raises when the connection is lost: what was sent
        meanwhile is unknown, so subscribe again and look again.
        """
        ...

    async def close(self) -> None:
        """Give the connection back. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class TransactionalSql:
    """How a transactional backend joins the engine's functions: one SQL function runs a core function and sends what it
    answers, one takes hints and claims; for `args.tell_enqueued` both add `tasker.enqueued_v1` of the answer."""

    call: str
    """`call(fn text, args jsonb) -> jsonb`: core function plus sends, one transaction."""
    claim: str
    """`claim(args jsonb) -> jsonb`: pop hints from the queues in `args`, then claim, in two statements."""
    missing: str
    """`missing(namespace text, steps uuid[]) -> setof uuid`: those without a hint in the queue."""


@runtime_checkable
class TransactionalBackend(Backend, Protocol):
    """A backend whose queues live in the engine's own database."""

    def transactional_sql(self) -> TransactionalSql:
        """The names of the wrapper functions, installed by `install_sql`."""
        ...

    def install_sql(self) -> Sequence[tuple[str, str]]:
        """(name, SQL) scripts that create or replace what the backend needs in the database, in order."""
        ...


@runtime_checkable
class CountsTogether(Protocol):
    """A backend that can answer for many queues in one step."""

    async def all_stats(self, queues: Sequence[str]) -> list[QueueStats]:
        """Return the statistics of those of these queues that exist."""
        ...


@runtime_checkable
class GrantsRoles(Protocol):
    """A backend in the engine's database that can say what roles need in order to use its queues."""

    def role_sql(self, roles: Sequence[str]) -> str:
        """SQL that lets these roles, named as SQL names them, send and take messages; it may be run again."""


BackendSettings = Mapping[str, Any]

ENCODE_URL = "percent-encode special characters of user and password: % as %25, @ as %40, / as %2F, ? as %3F, # as %23"
"""What to do about a broker's URL that cannot be taken apart."""


def known_settings(provider: str, given: BackendSettings, known: Collection[str]) -> dict[str, Any]:
    """What is given but `channel`, the engine's database, which is lent to every backend.

    Raises `MessagingError` when there is anything else than `known`.
    """
    if unknown := sorted({*given} - {*known, "channel"}):
        hint = f"there are: {', '.join(known)}" if known else "there are none"
        raise MessagingError(f"{provider} has no setting {', '.join(unknown)}", retryable=False, hint=hint)
    return {key: value for key, value in given.items() if key != "channel"}


def is_clear_url(url: str) -> bool:
    """True for a broker's URL in which no part of a password passes for a host, a port or a path.

    A raw `/`, `?` or `#` in a password ends the address too early: its port is no number then, or `@` comes later.
    """
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme == "unix" or "@" not in f"{parts.path}{parts.query}{parts.fragment}"


def check_url(provider: str, url: str) -> None:
    """Raises a `MessagingError` that does not quote the URL unless `is_clear_url`."""
    if not is_clear_url(url):
        raise MessagingError(f"the URL of {provider} cannot be taken apart", retryable=False, hint=ENCODE_URL)

"""Port that a messaging backend implements.

A message is only a wake-up that carries ids; the row in PostgreSQL decides. A backend is chosen by name through the
entry-point group `tasker.backends`. Its module offers:

- `create(settings: Mapping[str, Any]) -> Backend`,
- `settings_table() -> type[Table]`, if it has settings: the keys of `[common.queues.NAME]`
  (`tasker.settings.table`), checked, documented, explained and redacted like every other setting,
- `VARIABLES`, the environment variables that this table names.

Every process that lists the environment variables imports the module. So it imports its client library and its table
inside these functions.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

from tasker.dataclasses import dataclass
from tasker.errors import MessagingError
from tasker.settings.addresses import ENCODE_URL, BackendSettings, is_clear_url


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Optional abilities of a backend. The conformance suite fails if a declared ability does not work."""

    push: bool = False
    """`subscribe_many` yields notifications as messages arrive."""
    transactional: bool = False
    """Messages live in the engine's database and are sent in the transaction of the change that they announce."""
    native_delay: bool = False
    """`send_message_with_delay` hides a message until it is due."""
    ack_extend: bool = False
    """`extend_visibility` hides a received message for longer."""
    fetch_by_id: bool = False
    """`receive_message` takes one message by the id in its notification."""
    fallback_polling: bool = False
    """A push may be lost, so the queue must also be polled."""
    shared: bool = True
    """Other processes use the same queues."""


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """Received message that must be acknowledged.

    `payload` is what was sent: JSON may come back with other whitespace and key order, anything else byte for byte.
    `read_count` is 1 at the first receipt and grows by one with each further receipt.
    """

    queue: str
    message_id: int
    payload: bytes
    read_count: int = 1


@dataclass(frozen=True, slots=True)
class MessageAvailable:
    """Notification that a queue has a message, which must still be received."""

    queue: str
    message_id: int | None = None


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Depth and age of a queue."""

    queue: str
    depth: int
    """Number of waiting messages, visible or not."""
    oldest_seconds: float | None
    """Age of the oldest message; None if the queue is empty or the provider cannot report it without a receive."""
    consumers: int | None = None
    """Number of current consumers; None if the provider does not know."""
    unseen: int = 0
    """Upper bound of messages that other consumers may have received and that `depth` does not count."""
    in_flight: int | None = None
    """Number of messages in `depth` that were received and are not settled; None if the provider does not tell."""


@runtime_checkable
class Backend(Protocol):
    """Messaging provider. All calls raise `tasker.errors.MessagingError` on failure.

    A name that `check_queue_name` refuses raises `InvalidQueueName`. A queue that does not exist raises
    `MessagingError` except in `create_queue`, `delete_queue` and `queue_exists`. A received message belongs to the
    receiver until it is acknowledged, given back, or received by another consumer after its visibility timeout.
    """

    capabilities: Capabilities

    def provider_name(self) -> str:
        """Return the name of the provider's entry point."""
        ...

    async def open(self) -> None:
        """Connect. May be called twice."""
        ...

    async def close(self) -> None:
        """Release connections. May be called twice."""
        ...

    async def health_check(self) -> bool:
        """Return whether the provider answers."""
        ...

    async def create_queue(self, queue: str) -> None:
        """Create the queue if it does not exist."""
        ...

    async def delete_queue(self, queue: str) -> None:
        """Delete the queue and its messages, if it exists."""
        ...

    async def queue_exists(self, queue: str) -> bool:
        """Return whether the queue exists."""
        ...

    async def list_queues(self) -> list[str]:
        """Return the names of all queues, sorted."""
        ...

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send a message and return its id."""
        ...

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send messages in order and return their ids."""
        ...

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that becomes visible after the delay, and return its id."""
        ...

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Receive up to `limit` visible messages and hide them from others for `visibility_timeout` seconds."""
        ...

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """Receive the message with this id and hide it (`fetch_by_id`).

        Return None if the message is gone or another consumer has it.
        """
        ...

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Acknowledge a message. Return False if it no longer belonged to the caller."""
        ...

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        """Acknowledge messages in as few requests as the provider needs; results are those of `ack_message` for each.

        When it raises, some messages may be acknowledged.
        """
        ...

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Give a message back, visible again after the delay. Return False if it no longer belonged to the caller."""
        ...

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Hide a message for `seconds` from now. Return False if it no longer belonged to the caller."""
        ...

    async def queue_stats(self, queue: str) -> QueueStats:
        """Return depth and age of the queue."""
        ...

    def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable | QueuedMessage, None]:
        """Yield notifications for these queues until the generator is closed.

        The first item for each queue is a `MessageAvailable`: the subscription is live, and messages that arrived
        earlier must be polled. Notifications may be duplicates or refer to a message that is gone.
        """
        ...


class SqlChannel(Protocol):
    """Access of a backend to the engine's database. `db` passes it to `create` under `settings["channel"]`.

    All methods raise a `tasker.errors.TaskerError` on failure, never an error of the driver.
    """

    async def execute(self, statement: str, params: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement with `%s` placeholders in its own transaction and return its rows.

        Tasks may call it concurrently.
        """
        ...

    def listen(self, channels: Sequence[str]) -> AbstractAsyncContextManager[AsyncIterator[tuple[str, str]]]:
        """LISTEN on every channel while the context is active; iterate over (channel, payload) of each notification.

        The implementation quotes the names. Iterating raises when the connection is lost. Notifications sent meanwhile
        are lost, so the caller must subscribe and poll again.
        """
        ...

    async def close(self) -> None:
        """Return the connection. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class TransactionalSql:
    """SQL functions that connect a transactional backend to the engine.

    `call` runs a core function and sends the messages in its answer; `claim` receives messages and claims their steps.
    If `args.tell_enqueued` is true, both add `tasker.enqueued_v1` of the answer.
    """

    call: str
    """`call(fn text, args jsonb) -> jsonb`: run a core function and send its messages in one transaction."""
    claim: str
    """`claim(args jsonb) -> jsonb`: pop messages from the queues in `args`, then claim, in two statements."""
    missing: str
    """`missing(namespace text, steps uuid[]) -> setof uuid`: the steps without a message in the queue."""


@runtime_checkable
class TransactionalBackend(Backend, Protocol):
    """Backend whose queues live in the engine's own database."""

    def transactional_sql(self) -> TransactionalSql:
        """Return the names of the wrapper functions installed by `install_sql`."""
        ...

    def install_sql(self) -> Sequence[tuple[str, str]]:
        """Return, in order, the (name, SQL) scripts that create or replace the backend's objects in the database."""
        ...


@runtime_checkable
class CountsTogether(Protocol):
    """Backend that can return the statistics of many queues in one request."""

    async def all_stats(self, queues: Sequence[str]) -> list[QueueStats]:
        """Return the statistics of those of these queues that exist."""
        ...


@runtime_checkable
class GrantsRoles(Protocol):
    """Backend in the engine's database that knows the grants that roles need for its queues."""

    def role_sql(self, roles: Sequence[str]) -> str:
        """Return SQL that lets these roles, given as SQL identifiers, send and receive messages; it is idempotent."""


def known_settings(provider: str, given: BackendSettings, known: Collection[str]) -> dict[str, Any]:
    """Return the given settings without `channel`, which every backend gets.

    Raises `MessagingError` if there are settings other than `known`.
    """
    if unknown := sorted({*given} - {*known, "channel"}):
        hint = f"expected one of: {', '.join(known)}" if known else "there are none"
        raise MessagingError(f"{provider} has no setting {', '.join(unknown)}", retryable=False, hint=hint)
    return {key: value for key, value in given.items() if key != "channel"}


def check_url(provider: str, url: str) -> None:
    """Check a broker's URL with `is_clear_url`. Raises `MessagingError`, without the URL, if it is ambiguous."""
    if not is_clear_url(url):
        raise MessagingError(f"the URL of {provider} cannot be parsed", retryable=False, hint=ENCODE_URL)

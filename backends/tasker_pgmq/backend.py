"""The backend: queues, messages and notifications through the connection that the engine lends."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tasker.contracts.messaging import (
    Capabilities,
    MessageAvailable,
    QueuedMessage,
    QueueStats,
    SqlChannel,
    TransactionalSql,
    check_queue_name,
)
from tasker.errors import BackendUnavailable, MessagingError, TaskerError
from tasker_pgmq import payloads, scripts
from tasker_pgmq.unsettled import UnsettledMessages

_CHANNEL = "pgmq_message_ready"


class PgmqBackend:
    """`TransactionalBackend` on PGMQ: messages are rows, so they come and go with the engine's own transactions.

    `read_ct`, which grows each time a message is received, tells whether a message is still ours: the backend remembers
    the value it got and changes the message only while it stands.
    """

    capabilities = Capabilities(
        push=True, transactional=True, native_delay=True, ack_extend=True, fetch_by_id=True, fallback_polling=True
    )

    def __init__(self, channel: SqlChannel | None) -> None:
        self._lent = channel
        self._unsettled = UnsettledMessages()

    def provider_name(self) -> str:
        """`pgmq`."""
        return "pgmq"

    def transactional_sql(self) -> TransactionalSql:
        """The functions of `sql/hints.sql`."""
        return TransactionalSql("tasker_pgmq.call_v1", "tasker_pgmq.claim_v1", "tasker_pgmq.missing_v1")

    def install_sql(self) -> Sequence[tuple[str, str]]:
        """PGMQ itself where it is missing, then this package's functions. Running them again changes nothing."""
        return scripts.install_scripts()

    def role_sql(self, roles: Sequence[str]) -> str:
        """`sql/roles.sql` for these roles."""
        return scripts.role_script(roles)

    async def open(self) -> None:
        """Check that the functions are installed; raises `BackendUnavailable` otherwise."""
        if not await self._value("select to_regprocedure('tasker_pgmq.call_v1(text, jsonb)') is not null"):
            raise BackendUnavailable(
                "the functions of the pgmq backend are not in this database", hint="run: tasker db upgrade"
            )

    async def close(self) -> None:
        """Give the lent connection back."""
        if self._lent is not None:
            await self._lent.close()

    async def health_check(self) -> bool:
        """True when PGMQ's catalogue can be read."""
        return bool(await self._value("select to_regclass('pgmq.meta') is not null"))

    async def create_queue(self, queue: str) -> None:
        """Make the queue, tuned for hot use; announces it on `pgmq_queue_created`."""
        await self._value("select tasker_pgmq.ensure_queue(%s)", check_queue_name(queue))

    async def delete_queue(self, queue: str) -> None:
        """Remove the queue and its archive."""
        await self._value("select tasker_pgmq.drop_queue(%s)", check_queue_name(queue))

    async def queue_exists(self, queue: str) -> bool:
        """True when PGMQ's catalogue lists it."""
        query = "select exists (select from pgmq.meta where queue_name = %s)"
        return bool(await self._value(query, check_queue_name(queue)))

    async def list_queues(self) -> list[str]:
        """All queues of PGMQ's catalogue, also those that others made."""
        return sorted(row[0] for row in await self._rows("select queue_name from pgmq.meta"))

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send and announce, one transaction."""
        return (await self._send(queue, [payload], 0.0))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send many in order in one statement; they are announced once, by the first of them."""
        return await self._send(queue, payloads, 0.0)

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that appears later. It is announced now, so its receiver must poll as well."""
        return (await self._send(queue, [payload], delay_seconds))[0]

    async def _send(self, queue: str, payloads_: Sequence[bytes], delay_seconds: float) -> list[int]:
        messages = [payloads.to_jsonb(payload) for payload in payloads_]
        query = "select tasker_pgmq.send_with_notify(%s, %s::text[]::jsonb[], %s)"
        ids = await self._value(query, check_queue_name(queue), messages, float(delay_seconds))
        return list(ids)

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Up to `limit` visible messages, the oldest first, hidden for `visibility_timeout` seconds."""
        query = "select * from tasker_pgmq.read(%s, %s, %s)"
        rows = await self._rows(query, check_queue_name(queue), limit, float(visibility_timeout))
        return [self._received(queue, row) for row in rows]

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """The message of that id unless somebody else was faster."""
        query = "select * from tasker_pgmq.read_specific_message(%s, %s, %s)"
        rows = await self._rows(query, check_queue_name(queue), message_id, float(visibility_timeout))
        return self._received(queue, rows[0]) if rows else None

    def _received(self, queue: str, row: tuple[Any, ...]) -> QueuedMessage:
        message_id, read_count, message = row
        self._unsettled.remember(queue, message_id, read_count)
        return QueuedMessage(queue, message_id, payloads.from_jsonb(message), read_count)

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Delete it."""
        return (await self.ack_messages(queue, [message_id]))[0]

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        """Delete them, in one statement."""
        counts = [(one, self._unsettled.forget(check_queue_name(queue), one)) for one in message_ids]
        ours = {message_id: count for message_id, count in counts if count is not None}
        query = "select tasker_pgmq.delete_received(%s, %s::bigint[], %s::int[])"
        deleted = await self._value(query, queue, [*ours], [*ours.values()]) if ours else ()
        return [message_id in deleted for message_id in message_ids]

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Make it visible again after the delay."""
        read_count = self._unsettled.forget(check_queue_name(queue), message_id)
        return await self._set_vt(queue, message_id, read_count, delay_seconds)

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Keep it hidden for `seconds` from now."""
        read_count = self._unsettled.read_count(check_queue_name(queue), message_id)
        return await self._set_vt(queue, message_id, read_count, seconds)

    async def _set_vt(self, queue: str, message_id: int, read_count: int | None, seconds: float) -> bool:
        if read_count is None:
            return False
        query = "select tasker_pgmq.set_vt_received(%s, %s, %s, %s)"
        return bool(await self._value(query, queue, message_id, read_count, float(seconds)))

    async def queue_stats(self, queue: str) -> QueueStats:
        """Depth, age and what is hidden since it was received. A queue of hints has none of those: claiming pops."""
        query = "select depth, oldest, in_flight from tasker_pgmq.stats(%s)"
        ((depth, oldest, in_flight),) = await self._rows(query, check_queue_name(queue))
        return QueueStats(queue, depth, oldest, in_flight=in_flight)

    async def all_stats(self, queues: Sequence[str]) -> list[QueueStats]:
        """Return the statistics of those of these queues that exist."""
        query = "select queue, depth, oldest, in_flight from tasker_pgmq.stats_of(%s::text[])"
        rows = await self._rows(query, [check_queue_name(queue) for queue in queues])
        return [QueueStats(queue, depth, oldest, in_flight=in_flight) for queue, depth, oldest, in_flight in rows]

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable, None]:
        """Listens on the channels of the queues' namespaces; the global channel would double everything."""
        wanted = sorted({check_queue_name(queue) for queue in queues})
        query = "select distinct tasker_pgmq.extract_queue_namespace(q) from unnest(%s::text[]) q"
        channels = [f"{_CHANNEL}.{namespace}" for (namespace,) in await self._rows(query, wanted)]
        with _messaging_errors():
            async with self._channel.listen(sorted(channels)) as notifications:
                for queue in wanted:
                    yield MessageAvailable(queue)
                async for _, payload in notifications:
                    available = _available(payload)
                    if available and available.queue in wanted:
                        yield available

    @property
    def _channel(self) -> SqlChannel:
        if self._lent is None:
            raise BackendUnavailable(
                "the pgmq backend has no connection", hint='pass one to create(): {"channel": SqlChannel}'
            )
        return self._lent

    async def _value(self, query: str, *params: Any) -> Any:
        ((value,),) = await self._rows(query, *params)
        return value

    async def _rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        with _messaging_errors():
            return await self._channel.execute(query, params)


@contextmanager
def _messaging_errors() -> Iterator[None]:
    try:
        yield
    except MessagingError:
        raise
    except TaskerError as error:
        raise MessagingError(error.message, retryable=error.retryable, hint=error.hint) from error


def _available(payload: str) -> MessageAvailable | None:
    """What a notification announces; None when somebody else wrote it."""
    try:
        event = json.loads(payload)
        return MessageAvailable(event["queue_name"], event.get("msg_id"))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None

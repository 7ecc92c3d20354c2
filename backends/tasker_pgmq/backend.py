"""Backend on PGMQ: queues, messages and notifications on a connection of the engine."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tasker.errors import BackendUnavailable, MessagingError, TaskerError
from tasker.messaging.port import (
    Capabilities,
    MessageAvailable,
    QueuedMessage,
    QueueStats,
    SqlChannel,
    TransactionalSql,
)
from tasker.settings.addresses import check_queue_name
from tasker_pgmq import payloads, scripts
from tasker_pgmq.unsettled import UnsettledMessages

_CHANNEL = "pgmq_message_ready"


class PgmqBackend:
    """`TransactionalBackend` on PGMQ: messages are rows, so they are part of the engine's own transactions.

    `read_ct`, which grows each time a message is received, shows whether a message still belongs to this process: the
    backend remembers the value that it got and changes the message only while the value is unchanged.
    """

    capabilities = Capabilities(
        push=True, transactional=True, native_delay=True, ack_extend=True, fetch_by_id=True, fallback_polling=True
    )

    def __init__(self, channel: SqlChannel | None) -> None:
        self._lent = channel
        self._unsettled = UnsettledMessages()

    def provider_name(self) -> str:
        return "pgmq"

    def transactional_sql(self) -> TransactionalSql:
        """Return the names of the functions of `sql/hints.sql`."""
        return TransactionalSql("tasker_pgmq.call_v1", "tasker_pgmq.claim_v1", "tasker_pgmq.missing_v1")

    def install_sql(self) -> Sequence[tuple[str, str]]:
        """Return the SQL of PGMQ itself if it is missing, then of this package's functions. Running it again changes
        nothing."""
        return scripts.install_scripts()

    def role_sql(self, roles: Sequence[str]) -> str:
        """Return `sql/roles.sql` for these roles."""
        return scripts.role_script(roles)

    async def open(self) -> None:
        """Check that the functions are installed. Raises `BackendUnavailable` otherwise."""
        if not await self._value("select to_regprocedure('tasker_pgmq.call_v1(text, jsonb)') is not null"):
            raise BackendUnavailable(
                "the functions of the pgmq backend are not in this database", hint="run: tasker db upgrade"
            )

    async def close(self) -> None:
        """Release the connection of the engine."""
        if self._lent is not None:
            await self._lent.close()

    async def health_check(self) -> bool:
        """Return True if PGMQ's catalog can be read."""
        return bool(await self._value("select to_regclass('pgmq.meta') is not null"))

    async def create_queue(self, queue: str) -> None:
        """Create the queue with settings for frequent updates; announces it on `pgmq_queue_created`."""
        await self._value("select tasker_pgmq.ensure_queue(%s)", check_queue_name(queue))

    async def delete_queue(self, queue: str) -> None:
        """Delete the queue and its archive."""
        await self._value("select tasker_pgmq.drop_queue(%s)", check_queue_name(queue))

    async def queue_exists(self, queue: str) -> bool:
        """Return True if PGMQ's catalog lists the queue."""
        query = "select exists (select from pgmq.meta where queue_name = %s)"
        return bool(await self._value(query, check_queue_name(queue)))

    async def list_queues(self) -> list[str]:
        """Return all queues of PGMQ's catalog, including those created by other applications."""
        return sorted(row[0] for row in await self._rows("select queue_name from pgmq.meta"))

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send and announce a message in one transaction."""
        return (await self._send(queue, [payload], 0.0))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send messages in order in one statement; the first of them announces all."""
        return await self._send(queue, payloads, 0.0)

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that becomes visible later. It is announced now, so its receiver must poll as well."""
        return (await self._send(queue, [payload], delay_seconds))[0]

    async def _send(self, queue: str, payloads_: Sequence[bytes], delay_seconds: float) -> list[int]:
        messages = [payloads.to_jsonb(payload) for payload in payloads_]
        query = "select tasker_pgmq.send_with_notify(%s, %s::text[]::jsonb[], %s)"
        ids = await self._value(query, check_queue_name(queue), messages, float(delay_seconds))
        return list(ids)

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Return up to `limit` visible messages, the oldest first, and hide them for `visibility_timeout` seconds."""
        query = "select * from tasker_pgmq.read(%s, %s, %s)"
        rows = await self._rows(query, check_queue_name(queue), limit, float(visibility_timeout))
        return [self._received(queue, row) for row in rows]

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """Return the message with that id, or None if another process was faster."""
        query = "select * from tasker_pgmq.read_specific_message(%s, %s, %s)"
        rows = await self._rows(query, check_queue_name(queue), message_id, float(visibility_timeout))
        return self._received(queue, rows[0]) if rows else None

    def _received(self, queue: str, row: tuple[Any, ...]) -> QueuedMessage:
        message_id, read_count, message = row
        self._unsettled.remember(queue, message_id, read_count)
        return QueuedMessage(queue, message_id, payloads.from_jsonb(message), read_count)

    async def ack_message(self, queue: str, message_id: int) -> bool:
        return (await self.ack_messages(queue, [message_id]))[0]

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        """Delete messages in one statement."""
        counts = [(one, self._unsettled.forget(check_queue_name(queue), one)) for one in message_ids]
        unsettled = {message_id: count for message_id, count in counts if count is not None}
        query = "select tasker_pgmq.delete_received(%s, %s::bigint[], %s::int[])"
        deleted = await self._value(query, queue, [*unsettled], [*unsettled.values()]) if unsettled else ()
        return [message_id in deleted for message_id in message_ids]

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Release a message; it is visible again after the delay."""
        read_count = self._unsettled.forget(check_queue_name(queue), message_id)
        return await self._set_vt(queue, message_id, read_count, delay_seconds)

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Hide a message for `seconds` from now."""
        read_count = self._unsettled.read_count(check_queue_name(queue), message_id)
        return await self._set_vt(queue, message_id, read_count, seconds)

    async def _set_vt(self, queue: str, message_id: int, read_count: int | None, seconds: float) -> bool:
        if read_count is None:
            return False
        query = "select tasker_pgmq.set_vt_received(%s, %s, %s, %s)"
        return bool(await self._value(query, queue, message_id, read_count, float(seconds)))

    async def queue_stats(self, queue: str) -> QueueStats:
        """Return the depth, the age and the number of hidden messages. Wake-up messages are never hidden: claiming
        deletes them."""
        query = "select depth, oldest, in_flight from tasker_pgmq.stats(%s)"
        ((depth, oldest, in_flight),) = await self._rows(query, check_queue_name(queue))
        return QueueStats(queue, depth, oldest, in_flight=in_flight)

    async def all_stats(self, queues: Sequence[str]) -> list[QueueStats]:
        """Return the statistics of those of these queues that exist."""
        query = "select queue, depth, oldest, in_flight from tasker_pgmq.stats_of(%s::text[])"
        rows = await self._rows(query, [check_queue_name(queue) for queue in queues])
        return [QueueStats(queue, depth, oldest, in_flight=in_flight) for queue, depth, oldest, in_flight in rows]

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable, None]:
        """Listen on the channels of the queues' namespaces; the global channel would duplicate every notification."""
        queue_names = sorted({check_queue_name(queue) for queue in queues})
        query = "select distinct tasker_pgmq.extract_queue_namespace(q) from unnest(%s::text[]) q"
        channels = [f"{_CHANNEL}.{namespace}" for (namespace,) in await self._rows(query, queue_names)]
        with _messaging_errors():
            async with self._channel.listen(sorted(channels)) as notifications:
                for queue in queue_names:
                    yield MessageAvailable(queue)
                async for _, payload in notifications:
                    available = _available(payload)
                    if available and available.queue in queue_names:
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
    """Parse a notification; return None for the payload of another application."""
    try:
        event = json.loads(payload)
        return MessageAvailable(event["queue_name"], event.get("msg_id"))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None

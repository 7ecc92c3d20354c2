"""Sending of durable messages with Tasker's own ids, each confirmed by the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from aiormq import Channel
from aiormq.abc import ChannelFrame
from aiormq.exceptions import PublishError
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.common import FieldTable
from pamqp.frame import marshal
from pamqp.header import ContentHeader

from tasker_rabbitmq.link import PUBLISH, REPLY_SECONDS, Link

IN_FLIGHT = 500
"""Maximum number of messages published before their confirmations are awaited."""
READS = "x-tasker-reads"
"""Header with the number of receptions before the message was sent again with a delay, which resets the broker's count.
"""


Messages = Sequence[tuple[int, bytes]]
"""Ids and payloads."""


async def publish(link: Link, name: str, messages: Messages, sent_at: datetime, reads: int) -> None:
    """Send to the queue of that name on the broker, in order, as messages that were received `reads` times.

    Raises `KeyError` if it does not exist, `MessagingError` otherwise; some messages may have been sent then.
    """
    headers: FieldTable | None = {READS: reads} if reads else None
    common = Basic.Properties(delivery_mode=2, timestamp=sent_at, headers=headers)
    for start in range(0, len(messages), IN_FLIGHT):
        channel = await link.channel(PUBLISH)
        async with link.answered(channel), asyncio.timeout(REPLY_SECONDS):
            try:
                await asyncio.gather(*await _send(channel, name, messages[start : start + IN_FLIGHT], common))
            except PublishError as error:
                raise KeyError(name) from error


async def _send(
    channel: Channel, name: str, messages: Messages, common: Basic.Properties
) -> list[asyncio.Future[object]]:
    """Write messages together and return their confirmations.

    For single messages the client creates a task, a timer and a write each, which takes four times as long.
    """
    async with channel.lock:
        tags = range(channel.delivery_tag + 1, channel.delivery_tag + 1 + len(messages))
        text = b"".join(_frames(channel, name, messages, common))
        confirmations = [_expect(channel, tag, str(id_)) for tag, (id_, _) in zip(tags, messages, strict=True)]
        channel.delivery_tag = tags[-1]
        try:
            await channel.write_queue.put(ChannelFrame(payload=text, should_close=False))
        except BaseException:  # the broker has seen none of them: the next messages get their numbers
            channel.delivery_tag = tags[0] - 1
            for tag in tags:
                channel.confirmations.pop(tag).cancel()
            raise
        return confirmations


def _frames(channel: Channel, name: str, messages: Messages, common: Basic.Properties) -> Iterator[bytes]:
    to, number, most = Basic.Publish(routing_key=name, mandatory=True), channel.number, channel.max_content_size
    method = marshal(to, number)
    for message_id, payload in messages:
        common.message_id = str(message_id)
        yield method
        yield marshal(ContentHeader(body_size=len(payload), properties=common), number)
        for start in range(0, len(payload), most):
            yield marshal(ContentBody(payload[start : start + most]), number)


def _expect(channel: Channel, tag: int, message_id: str) -> asyncio.Future[object]:
    """Register a confirmation with the client, by the number of the message and, if it is returned, by its id."""

    def forget(_: asyncio.Future[object]) -> None:
        if channel.message_id_delivery_tag.get(message_id) == tag:
            del channel.message_id_delivery_tag[message_id]

    confirmation = channel.create_future()
    channel.confirmations[tag] = confirmation
    channel.message_id_delivery_tag[message_id] = tag
    confirmation.add_done_callback(forget)
    return confirmation

"""A message on the wire: its id, when it was sent, how often it was received."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp.commands import Basic

READS = "x-tasker-reads"
"""Header: how often the message was received before it was sent again with a delay, which resets the broker's count."""
DELIVERIES = "x-delivery-count"
"""Header that a quorum queue keeps: how often it has delivered the message before."""


def new_ids() -> Iterator[int]:
    """Ids that grow and that no other process is likely to give: RabbitMQ has none of its own (E-17)."""
    return itertools.count(secrets.randbits(62))


def properties(message_id: int, sent_at: datetime, reads: int = 0) -> Basic.Properties:
    """The properties of a durable message."""
    headers = {READS: reads} if reads else None
    return Basic.Properties(delivery_mode=2, message_id=str(message_id), timestamp=sent_at, headers=headers)


@dataclass(slots=True)
class Receipt:
    """A delivered message and the right to settle it, which ends with the channel that delivered it."""

    message_id: int
    body: bytes
    reads: int
    """1 the first time it is received."""
    sent_at: datetime | None
    channel: AbstractChannel
    tag: int
    deadline: float = 0.0
    """When it goes back by itself, a reading of the clock."""

    @property
    def void(self) -> bool:
        """True when the channel is gone: the broker has put the message back."""
        return self.channel.is_closed

    async def acknowledge(self) -> None:
        """Done with it."""
        await self.channel.basic_ack(self.tag, wait=False)

    async def give_back(self, *, requeue: bool = True) -> None:
        """To its place in the queue, or to the dead letters."""
        if not self.void:
            await self.channel.basic_reject(self.tag, requeue=requeue, wait=False)


def receipt_of(delivered: DeliveredMessage, ids: Iterator[int]) -> Receipt:
    """The receipt of a delivery; what others have sent without our properties gets an id of ours."""
    found = delivered.header.properties
    headers = found.headers or {}
    reads = 1 + _count(headers.get(READS)) + _count(headers.get(DELIVERIES))
    text = found.message_id or ""
    message_id = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else next(ids)
    tag = delivered.delivery.delivery_tag or 0  # type: ignore[union-attr]
    return Receipt(message_id, delivered.body, reads, found.timestamp, delivered.channel, tag)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0

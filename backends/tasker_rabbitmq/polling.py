"""Receiving without a subscription."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from aiormq.exceptions import ChannelNotFoundEntity

from tasker_rabbitmq.link import RECEIVE, REPLY_SECONDS, Link
from tasker_rabbitmq.received import Feed, Receipt, receipt_of

STRAGGLER_SECONDS = 0.2
"""How long to wait for messages that the broker has announced; a competitor may get them."""


async def poll(link: Link, name: str, ids: Iterator[int], limit: int) -> list[Receipt]:
    """Up to `limit` messages: one by `basic_get`, which tells how many are left; those come in one burst.

    Raises `KeyError` when the queue of that name on the broker does not exist, `MessagingError` otherwise.
    """
    channel = await link.channel(RECEIVE)
    async with link.answered(channel):
        try:
            found = await channel.basic_get(name, timeout=REPLY_SECONDS)
        except ChannelNotFoundEntity as error:
            raise KeyError(name) from error
    if found.delivery_tag is None:
        return []
    rest = min(limit - 1, found.message_count or 0)
    return [receipt_of(found, ids), *(await _burst(Feed(link, name, ids), rest) if rest else ())]


async def _burst(feed: Feed, count: int) -> list[Receipt]:
    news = asyncio.Event()
    feed.listeners.add(news)
    try:
        await feed.start(min(count, 65535))
        with suppress(TimeoutError):
            while feed.running and len(feed.waiting) < count:
                await asyncio.wait_for(news.wait(), STRAGGLER_SECONDS)
                news.clear()
        return feed.take(count)
    finally:
        await feed.stop()

"""Receiving without a subscription."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from aiormq.abc import DeliveredMessage
from aiormq.exceptions import ChannelNotFoundEntity

from tasker_rabbitmq.link import RECEIVE, REPLY_SECONDS, Link
from tasker_rabbitmq.received import Feed, Receipt, new_ids, receipt_of

STRAGGLER_SECONDS = 0.2
"""How long to wait for messages that the broker has announced; a competitor may get them."""


async def poll(link: Link, name: str, ids: Iterator[int], limit: int) -> list[Receipt]:
    """Up to `limit` messages: one by `basic_get`, which tells how many are left; those come in one burst.

    Raises `KeyError` when the queue of that name on the broker does not exist, `MessagingError` otherwise.
    """
    found = await _get(link, name)
    if found.delivery_tag is None:
        return []
    rest, first = min(limit - 1, found.message_count or 0), receipt_of(found, ids)
    try:
        return [first, *(await _burst(Feed(link, name, ids), rest) if rest else ())]
    except BaseException:  # nobody will know of it
        link.afterwards(first.give_back(link))
        raise


async def _get(link: Link, name: str) -> DeliveredMessage:
    """One `basic_get`, which ends though its caller is cancelled: what it brings then goes back at once.

    The client would close the channel of a call that is cancelled, with all that came by it, or keep its message.
    """
    channel = await link.channel(RECEIVE)
    getting = asyncio.create_task(channel.basic_get(name, timeout=REPLY_SECONDS))
    try:
        async with link.answered(channel):
            return await asyncio.shield(getting)
    except ChannelNotFoundEntity as error:
        raise KeyError(name) from error
    except asyncio.CancelledError:
        link.afterwards(_undo(link, getting))
        raise


async def _undo(link: Link, getting: asyncio.Task[DeliveredMessage]) -> None:
    found = await getting
    if found.delivery_tag is not None:
        await receipt_of(found, new_ids()).give_back(link)


async def _burst(feed: Feed, count: int) -> list[Receipt]:
    news = asyncio.Event()
    feed.listeners.add(news)
    try:
        await feed.start(min(count, 65535))
        with suppress(TimeoutError):
            while feed.running and len(feed.waiting) < count:
                await asyncio.wait_for(news.wait(), STRAGGLER_SECONDS)
                news.clear()
    except BaseException:
        await feed.stop()
        raise
    await feed.stop(keep=count)  # what has arrived meanwhile, too: no more was asked for
    return feed.take(count)

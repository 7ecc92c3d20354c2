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
"""Maximum wait for messages that the broker has announced; another process may get them."""


async def poll(link: Link, name: str, ids: Iterator[int], limit: int) -> list[Receipt]:
    """Return up to `limit` messages: one by `basic_get`, which returns the number of others, then those in one burst.

    Raises `KeyError` if the broker has no queue of that name, `MessagingError` otherwise.
    """
    message = await _get(link, name)
    if message.delivery_tag is None:
        return []
    rest, first = min(limit - 1, message.message_count or 0), receipt_of(message, ids)
    try:
        return [first, *(await _burst(Feed(link, name, ids), rest) if rest else ())]
    except BaseException:  # the caller does not get the message
        link.afterwards(first.give_back(link))
        raise


async def _get(link: Link, name: str) -> DeliveredMessage:
    """Call `basic_get` to its end even if the caller is cancelled: a message that it returns is then put back.

    For a cancelled call the client would close the channel, with all other messages of it, or keep the message.
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
    message = await getting
    if message.delivery_tag is not None:
        await receipt_of(message, new_ids()).give_back(link)


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
    await feed.stop(keep=count)  # also messages that have arrived meanwhile: no more were requested
    return feed.take(count)

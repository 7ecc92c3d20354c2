"""Wake-ups by a messaging backend that pushes and whose messages are not sent in the engine's own transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial

from tasker.app.parts import Part
from tasker.errors import MessagingError
from tasker.messaging.service import MessagingService

AGAIN_SECONDS = 0.5
"""Pause before a subscription that was lost is begun again; the polls go on meanwhile."""


class Follower:
    """Calls `wake` at each item of `news()`, which is begun again when it fails."""

    def __init__(self, news: Callable[[], AsyncGenerator[None, None]], wake: Callable[[], None]) -> None:
        self._news, self._wake = news, wake

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            with suppress(MessagingError):
                async with aclosing(self._news()) as news:
                    async for _ in news:
                        self._wake()
            await asyncio.sleep(AGAIN_SECONDS)


def step_followers(messaging: MessagingService, namespaces: Sequence[str], wake: Callable[[], None]) -> list[Part]:
    """Those for the hints of namespaces; none where NOTIFY wakes the workers."""
    if not _pushes(messaging):
        return []
    return [Follower(partial(messaging.step_news, namespace), wake).run for namespace in namespaces]


def result_followers(messaging: MessagingService, wake: Callable[[], None]) -> list[Part]:
    """The one for parked results; none where NOTIFY announces them."""
    if not _pushes(messaging):
        return []
    return [Follower(partial(messaging.news, messaging.names.step_results), wake).run]


def _pushes(messaging: MessagingService) -> bool:
    return messaging.capabilities.push and not messaging.capabilities.transactional

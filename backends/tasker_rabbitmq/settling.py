"""Acknowledgement of many messages with few frames: the broker writes each frame to its log separately."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary

from aiormq.abc import AbstractChannel

REMEMBERED = 100_000
"""Maximum number of settled messages behind an unsettled one of a channel; beyond it each is acknowledged separately.
"""


class Settled:
    """Settled deliveries of a channel: all up to a number, and some above it.

    An acknowledgement of many settles everything before its own number. It is used only if each earlier number is known
    to be settled or is acknowledged too, so it never settles a message in progress, or one that has arrived unseen.
    """

    def __init__(self) -> None:
        self._all_to = 0
        self._above: set[int] = set()

    def acknowledgements(self, tags: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield the numbers to send, each with the deliveries it is for; one with several settles all earlier
        deliveries."""
        new, reached = set(tags), self._all_to
        while reached + 1 in new or reached + 1 in self._above:
            reached += 1
        together = sorted(tag for tag in new if tag <= reached)
        if together:
            yield together[-1], together
        for tag in sorted(new.difference(together)):
            yield tag, (tag,)

    def settle(self, tags: Iterable[int]) -> None:
        """Record deliveries as settled on the broker."""
        if len(self._above) < REMEMBERED:
            self._above.update(tags)
        while self._all_to + 1 in self._above:
            self._all_to += 1
            self._above.remove(self._all_to)


class Settlements:
    """`Settled` by channel, as long as the channel is used."""

    def __init__(self) -> None:
        self._by_channel: WeakKeyDictionary[AbstractChannel, Settled] = WeakKeyDictionary()

    def of(self, channel: AbstractChannel) -> Settled:
        if (settled := self._by_channel.get(channel)) is None:
            settled = self._by_channel[channel] = Settled()
        return settled

    async def acknowledge(self, channel: AbstractChannel, tags: Sequence[int]) -> None:
        """Acknowledge messages. Raises the client's errors; some messages may be acknowledged then."""
        settled = self.of(channel)
        for tag, together in [*settled.acknowledgements(tags)]:
            await channel.basic_ack(tag, multiple=len(together) > 1, wait=False)
            settled.settle(together)

    async def reject(self, channel: AbstractChannel, tag: int, *, requeue: bool) -> None:
        """Return a message to its position in the queue, or move it to the dead letters."""
        await channel.basic_reject(tag, requeue=requeue, wait=False)
        self.of(channel).settle((tag,))

"""Acknowledging many messages with few frames: the broker writes each frame to its log by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary

from aiormq.abc import AbstractChannel

REMEMBERED = 100_000
"""Settled messages of a channel behind one that is not: beyond that each is acknowledged by itself."""


class Settled:
    """Which deliveries of a channel are settled: all up to a number, and some above it.

    One acknowledgement of many settles everything before its own number, whatever it is. So it is used only where each
    number before is known to be settled or among those that are acknowledged: nothing that somebody still works on, and
    nothing that has arrived unseen.
    """

    def __init__(self) -> None:
        self._all_to = 0
        self._above: set[int] = set()

    def acknowledgements(self, tags: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """The numbers to send for these, each with those that it is for: with several it settles all before, too."""
        new, reached = set(tags), self._all_to
        while reached + 1 in new or reached + 1 in self._above:
            reached += 1
        together = sorted(tag for tag in new if tag <= reached)
        if together:
            yield together[-1], together
        for tag in sorted(new.difference(together)):
            yield tag, (tag,)

    def settle(self, tags: Iterable[int]) -> None:
        """These were told to the broker."""
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
        """That of the channel."""
        if (found := self._by_channel.get(channel)) is None:
            found = self._by_channel[channel] = Settled()
        return found

    async def acknowledge(self, channel: AbstractChannel, tags: Sequence[int]) -> None:
        """Done with these messages. Raises what the client does; some may be acknowledged then."""
        settled = self.of(channel)
        for tag, together in [*settled.acknowledgements(tags)]:
            await channel.basic_ack(tag, multiple=len(together) > 1, wait=False)
            settled.settle(together)

    async def reject(self, channel: AbstractChannel, tag: int, *, requeue: bool) -> None:
        """Back to its place in the queue, or else to the dead letters."""
        await channel.basic_reject(tag, requeue=requeue, wait=False)
        self.of(channel).settle((tag,))

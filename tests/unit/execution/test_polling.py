"""The pauses between two looks of a process that polls: they grow, differ between processes, and work shortens them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from tasker.engine import polling
from tasker.engine.polling import SHORTEST_SECONDS, QueuePoll, QueuePoller


class Polls:
    """A process that looks at least every half second."""

    def longest_pause(self) -> float | None:
        return 0.5

    def poll(self, *, polled: bool) -> AbstractContextManager[QueuePoll]:
        raise NotImplementedError


class Chance:
    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


class Noted:
    """Stands for the loop's time-out: it is over at once, and noted."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def timeout(self, seconds: float) -> Any:
        self.pauses.append(seconds)
        return polling.asyncio.timeout_at(0)


async def pauses(monkeypatch: Any, chance: float, count: int, rest: QueuePoller | None = None) -> list[float]:
    noted = Noted()
    rest = rest or QueuePoller(Polls(), Chance(chance))
    with monkeypatch.context() as patched:
        patched.setattr(polling.asyncio, "timeout", noted.timeout)
        for _ in range(count):
            await rest.wait()
    return noted.pauses


async def test_pauses_without_work_double_up_to_the_longest(monkeypatch: Any) -> None:
    found = await pauses(monkeypatch, 0.5, 7)

    assert found == [SHORTEST_SECONDS * factor for factor in (2, 4, 8, 16)] + [0.5, 0.5, 0.5]


async def test_processes_do_not_look_at_the_same_moments(monkeypatch: Any) -> None:
    early, late = await pauses(monkeypatch, 0.0, 7), await pauses(monkeypatch, 0.99, 7)

    assert all(one < other for one, other in zip(early, late, strict=True))
    assert late[-1] > 0.6 > 0.4 > early[-1], "a quarter more or less"


async def test_after_work_the_first_pause_is_short_again(monkeypatch: Any) -> None:
    rest = QueuePoller(Polls(), Chance(0.5))
    await pauses(monkeypatch, 0.5, 6, rest)
    rest.begin()

    assert await pauses(monkeypatch, 0.5, 1, rest) == [2 * SHORTEST_SECONDS]

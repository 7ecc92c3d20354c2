"""A client that asks too often is told when to ask again, and holds up no other one."""

from __future__ import annotations

import pytest

from tasker.errors import TooManyRequests
from tasker.server import envelope as rate_limit
from tasker.server.envelope import RateLimit


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_so_many_at_once_and_then_as_many_as_the_rate_says() -> None:
    clock = Clock()
    limit = RateLimit(2, 3, clock)
    for _ in range(3):
        limit.spend("ada")
    for _ in range(2):  # what is refused does not count
        with pytest.raises(TooManyRequests) as refused:
            limit.spend("ada")
        assert refused.value.retry_after == pytest.approx(0.5)
    limit.spend("grace")
    clock.now += 0.5
    limit.spend("ada")
    with pytest.raises(TooManyRequests):
        limit.spend("ada")
    clock.now += 60
    for _ in range(3):
        limit.spend("ada")


def test_what_is_known_of_clients_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MOST_CLIENTS", 3)
    clock = Clock()
    limit = RateLimit(1, 1, clock)
    for number in range(6):
        limit.spend(f"client {number}")
    assert [*limit._due] == ["client 3", "client 4", "client 5"]
    clock.now += 2
    limit.spend("another")
    assert [*limit._due] == ["another"]

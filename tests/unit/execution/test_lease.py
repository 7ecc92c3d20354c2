"""How long a lease lasts, and that nothing is done about it once the worker has stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tasker.process.lease import LeaseKeeper
from tests.unit.execution.bench import PATIENCE, FakeClock

LEASE = 15.0


class Registry:
    """A database that answers a beat; `meanwhile` is done while the worker waits for the answer."""

    def __init__(self, answer: Mapping[str, Any], meanwhile: Callable[[], object]) -> None:
        self.answer, self.meanwhile = answer, meanwhile

    def call(self, *_: Any, **__: Any) -> Mapping[str, Any]:
        self.meanwhile()
        return self.answer


class Kept:
    """A lease whose threads a test plays itself."""

    def __init__(self, answer: Mapping[str, Any], meanwhile: Callable[[Kept], object]) -> None:
        self.clock, self.lost, self.fenced = FakeClock(), list[Any](), threading.Event()
        self.keeper = LeaseKeeper(
            Registry(answer, lambda: meanwhile(self)),  # type: ignore[arg-type]
            self.clock,
            worker="w",
            lease_ms=round(LEASE * 1000),
            in_hand=lambda: [("step", 1)],
            on_lost=self.lost.extend,
            on_fenced=self.fenced.set,
        )
        self.keeper._renewed = self.clock.monotonic()


def test_a_lease_lasts_from_the_question_and_not_from_a_late_answer() -> None:
    def late(kept: Kept) -> None:
        kept.clock.seconds += LEASE / 3

    kept = Kept({"known": True}, late)
    kept.keeper._beat()
    kept.clock.seconds += LEASE - LEASE / 3
    watching = threading.Thread(target=kept.keeper._watch, daemon=True)
    watching.start()
    over = kept.fenced.wait(PATIENCE)
    kept.keeper._over.set()
    watching.join(PATIENCE)

    assert over, "another worker may have its steps by now"


@pytest.mark.parametrize("answer", [{"known": False}, {"known": True, "lost": ["step"]}])
def test_an_answer_that_comes_after_the_stop_changes_nothing(answer: Mapping[str, Any]) -> None:
    kept = Kept(answer, lambda kept: kept.keeper._over.set())
    kept.keeper._beat()

    assert (kept.lost, kept.fenced.is_set()) == ([], False)


def test_a_lease_that_ends_while_the_worker_stops_fences_nobody() -> None:
    kept = Kept({"known": True}, lambda kept: None)
    kept.keeper._over.set()
    kept.clock.seconds += LEASE
    kept.keeper._watch()

    assert not kept.fenced.is_set()


def test_steps_that_were_taken_away_are_told_with_their_tokens() -> None:
    kept = Kept({"known": True, "lost": ["step"]}, lambda kept: None)
    kept.keeper._beat()

    assert kept.lost == [("step", 1)]

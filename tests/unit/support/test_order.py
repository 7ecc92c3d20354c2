"""The order in which the processes of a test run get the tests, cut by the plugin that hands them out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.scheduler import WorkStealingScheduling

from tests.support.order import waiting_first


class Process:
    """One that is handed tests."""

    shutting_down = False
    gateway = SimpleNamespace(id="one")

    def __init__(self) -> None:
        self.tests: list[int] = []

    def send_runtest_some(self, tests: list[int]) -> None:
        self.tests = tests


def handed_out(order: list[str], count: int) -> list[list[str]]:
    """What each process begins with."""
    config: Any = SimpleNamespace(getvalue=lambda name: [f"{count}*popen"])
    scheduler, processes = WorkStealingScheduling(config, cast(Any, SimpleNamespace(workstealsched=None))), []
    for _ in range(count):
        processes.append(Process())
        scheduler.add_node(cast(Any, processes[-1]))
        scheduler.add_node_collection(cast(Any, processes[-1]), order)
    scheduler.schedule()
    return [[order[test] for test in process.tests] for process in processes]


@pytest.mark.parametrize(
    ("processes", "begin"),
    [
        (1, ["s01 s04 s08 s20"]),
        (2, ["q00 q02 q03", "s01 s04 s08 s20"]),
        (4, ["q00 q02 q03", "q07 q09 q10", "s01 s08", "s04 s20"]),
        (5, ["q00 q02", "q06 q07", "s01 s20", "s04", "s08"]),
    ],
)
def test_half_of_the_processes_begin_with_tests_that_wait_and_the_others_are_in_order(
    processes: int, begin: list[str]
) -> None:
    tests = [f"{'s' if number in (1, 4, 8, 20) else 'q'}{number:02}" for number in range(21)]

    order = waiting_first(tests, lambda test: test.startswith("s"), processes)

    assert sorted(order) == sorted(tests)
    shares = handed_out(order, processes)
    assert [" ".join(share)[: len(first)] for share, first in zip(shares, begin, strict=True)] == begin
    quick = [test for share in shares for test in share if test.startswith("q")]
    assert quick == sorted(quick)


def test_more_tests_that_wait_than_a_share_holds_are_all_run() -> None:
    assert sorted(waiting_first([*"abcde"], lambda test: test < "e", 4)) == [*"abcde"]

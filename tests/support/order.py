"""In which order the processes of a test run get the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

Test = TypeVar("Test")


def waiting_first(tests: Sequence[Test], waits: Callable[[Test], bool], processes: int) -> list[Test]:
    """The tests in an order that `--dist worksteal` cuts into shares of which half begin with tests that wait.

    Those leave a core free while they wait, so others compute beside them; begun last, they would be what everybody
    waits for at the end. What is stolen comes from the end of a share: short tests, which follow each other as before.
    """
    slow = [test for test in tests if waits(test)]
    quick = iter([test for test in tests if not waits(test)])
    hands = (processes + 1) // 2
    begin = [()] * (processes - hands) + [slow[hand::hands] for hand in range(hands)]
    sizes = _shares(len(tests), processes)
    shares = [[*first, *islice(quick, max(0, size - len(first)))] for first, size in zip(begin, sizes, strict=True)]
    return [*chain.from_iterable(shares), *quick]


def _shares(tests: int, processes: int) -> Iterator[int]:
    """How many tests each process begins with."""
    for left in range(processes, 0, -1):
        yield tests // left
        tests -= tests // left

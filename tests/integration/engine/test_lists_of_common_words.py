"""A list by a tag or an initiator that many tasks have, together with their state, reads as many tasks as it may.

No index has both: where few of one kind are of the other, all tasks of a kind would be read to find them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tasker.services.tasks.lists import Count, TaskFilter, TaskLists
from tests.support.copies import copy_task
from tests.support.engine_fixture import Direct, Lab, fail
from tests.support.fleets.work import work_of

FEW, NEAR, READ = 5, 10, 30
COMMON: dict[str, Any] = {"tags": ["nightly"], "initiator": "cron", "source_system": "cron"}
"""Of all tasks that are complete; of those that failed only the oldest has it."""


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a large database are to it, these are to the lab."""
    for name, value in {"FEW": FEW, "NEAR": NEAR, "LOOKED_INTO": READ}.items():
        monkeypatch.setattr(f"tasker.services.tasks.lists.{name}", value)


def grown(lab: Lab, count: int) -> tuple[str, str]:
    """Make so many tasks fail, and as many be complete with what is common; the oldest that failed has it, too."""
    rare = lab.submit_one(lab.chain(1), **COMMON)
    lab.one.advance(*map(fail, lab.one.claim()))
    other = lab.submit_one(lab.chain(1), tags=["other"], initiator="other", source_system="other")
    lab.one.advance(*map(fail, lab.one.claim()))
    copy_task(lab.one, other, count)
    complete = lab.submit_one(lab.chain(1), **COMMON)
    lab.one.run_all()
    copy_task(lab.one, complete, count)
    lab.one.execute("vacuum analyze")
    lab.one.execute("set enable_seqscan to off")  # as where tables are large
    return rare, other


def test_a_common_word_and_a_state_are_found_part_by_part(lone_lab: Lab) -> None:
    rare, _ = grown(lone_lab, 100)
    lists = TaskLists(Direct(lone_lab.one))
    for name, word in COMMON.items():
        which = TaskFilter(status="error", **{name: word})
        part = asyncio.run(lists.part(which, limit=20))
        assert (part.tasks, part.read_to is None) == ([], False)
        parts = 1
        while part.read_to:
            part = asyncio.run(lists.part(which, limit=20, after=part.read_to))
            parts += 1
        assert (part.tasks, parts) == ([rare], 102 // READ + 1)
        assert asyncio.run(lists.page(which, limit=20)) == [rare]
        assert asyncio.run(lists.page(which, limit=20, offset=1)) == []
        assert asyncio.run(lists.page(which, limit=1, oldest_first=True)) == [rare]
        assert asyncio.run(lists.counted(which, 50)) == Count(0, at_least=True)
        assert asyncio.run(lists.counted(which, 200)) == Count(1)
        complete = TaskFilter(status="complete", **{name: word})
        assert len(asyncio.run(lists.part(complete, limit=20)).tasks) == 20
        assert len(asyncio.run(lists.page(complete, limit=90, offset=20))) == 81
        assert asyncio.run(lists.counted(complete, 50)) == Count(50, at_least=True)
        assert asyncio.run(lists.counted(complete, 200)) == Count(101)


def test_a_list_by_common_word_and_state_reads_the_same_among_many(lone_lab: Lab) -> None:
    lists = TaskLists(Direct(lone_lab.one))

    def pages(which: TaskFilter) -> int:
        def ask() -> None:
            assert asyncio.run(lists.part(which, limit=20)).read_to
            assert asyncio.run(lists.counted(which, 30)).at_least

        return work_of(lone_lab.one, ask).pages

    def pages_of_each(count: int) -> dict[str, int]:
        grown(lone_lab, count)
        return {name: pages(TaskFilter(status="error", **{name: COMMON[name]})) for name in ("tags", "initiator")}

    few, many = pages_of_each(2_000), pages_of_each(8_000)
    for name in few:
        assert many[name] <= few[name] * 1.5 + 20, name

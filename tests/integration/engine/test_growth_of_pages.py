"""A page of the steps of a task costs what its steps cost, however many others the task has."""

from __future__ import annotations

from tasker.db.sql_files import query
from tasker.services.tasks.read import PAGE_OF_REPORT
from tests.benchmarks.growth.wide import wide
from tests.support.engine_fixture import Lab
from tests.support.fleets.work import work_of

SMALL, LARGE = 100, 400
SHOWN = 10


def test_a_page_of_steps_costs_little_more_in_a_wider_task(lone_lab: Lab) -> None:
    lab = lone_lab
    tasks = [wide(lab, width) for width in (SMALL, LARGE)]
    lab.one.execute("vacuum analyze")
    lab.one.execute("set enable_seqscan to off")  # as where tables are large
    page = {"step": None, "results": True, "limit": SHOWN, "offset": 20}

    def pages(text: str, task: str) -> int:
        def read() -> None:
            rows = lab.one.connection.execute(text.encode(), {"task": task, **page}).fetchall()
            of_steps = rows[0][0]["steps"] if text is PAGE_OF_REPORT else [row for row in rows if row[0] != "task"]
            assert len(of_steps) == SHOWN

        return work_of(lab.one, read).pages

    for text in (PAGE_OF_REPORT, query("client", "steps"), query("tasks", "history_of_steps")):
        small, large = (pages(text, task) for task in tasks)
        assert large <= small * 1.5 + (LARGE - SMALL) / 10, text

"""What `make bench-growth` measures can be asked: each case, as small as it can be."""

from __future__ import annotations

import json

import pytest

from tasker.services.tasks.read import REPORT
from tests.benchmarks.growth import children, crowds, expansion, namespaces, pages, templates, wide
from tests.benchmarks.growth.case import Case
from tests.benchmarks.growth.pages import PageCase
from tests.support.copies import copy_task
from tests.support.engine_fixture import Lab

CASES = (*expansion.CASES, *wide.CASES, *templates.CASES, *crowds.CASES, *children.CASES)


def test_copies_of_a_task_read_as_the_task(database_url: str) -> None:
    lab = Lab(database_url)
    try:
        task = lab.submit_one(lab.chain(2), context={"order": 1}, tags=["web"])
        lab.one.run_all()
        copy_task(lab.one, task, 3)
        tasks = [str(row.task_uuid) for row in lab.one.rows("select task_uuid from tasker.tasks")]
        reports = [json.dumps(lab.one.connection.execute(REPORT, {"task": each}).fetchone()) for each in tasks]
    finally:
        lab.close()
    assert len(tasks) == 4
    assert len({report.replace(each[:30], "") for each, report in zip(tasks, reports, strict=True)}) == 1
    assert all(part in reports[0] for part in ('{"order": 1}', '"web"', '"by"')), "its input, its tag, its results"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_case_of_growth_can_be_measured(database_url: str, case: Case) -> None:
    lab = Lab(database_url)
    try:
        case.prepare(lab, 8)()
    finally:
        lab.close()


@pytest.mark.parametrize("case", pages.CASES, ids=[case.name for case in pages.CASES])
def test_a_case_of_what_may_not_grow_can_be_measured(database_url: str, case: PageCase) -> None:
    lab = Lab(database_url)
    try:
        case.prepare(lab, min(case.small, 100))()
    finally:
        lab.close()


def test_reads_of_namespaces_can_be_measured(database_url: str) -> None:
    lab = Lab(database_url)
    try:
        scene = namespaces.NamespaceScene(lab, 6)
        for name, read in namespaces.READS.items():
            statements, pages, rows = scene.work(read.call)
            assert statements > 0 < pages, name
            assert rows == (6 if read.each else namespaces.SHOWN), name
    finally:
        lab.close()

"""`tasker top`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import click

from tasker.cli.commands.top import overview_text
from tasker.views.overview import OpenBreaker, Overview, Process, Queue, RunningStep, TemplatePace
from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke, run_json

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def fleet(taken: int = 100, seconds: float = 0, queues: int = 1) -> Overview:
    return Overview(
        at=NOON + timedelta(seconds=seconds),
        queues=[Queue(f"payments_{n:02}", 3, 20_000, 0, taken, 1) for n in range(queues)],
        processes=[Process("0" * 36, "w1", "worker", "here", 4711, "live", ["payments"], 100, 37, False, 2900)],
        breakers=[OpenBreaker("bank", 12, NOON)],
        running=[RunningStep(40.0, 4.0, 10.0, "reading b.csv", NOON, 65.0, "0199c1f4-8a52-7", "order:1.0.0", "read")],
        templates=[TemplatePace("payments", "order:1.0.0", 3, 1, 1, 1200, 4000)],
        pauses=1,
        open=20_003,
        dead_letters=4,
        submitted=60,
        failed_attempts=1,
    )


def test_it_is_shown_once_where_there_is_no_terminal(database_url: str) -> None:
    assert "no processes are running" in invoke("top", database=database_url).stdout

    run_json(WORKFLOWS / "linear_math", database=database_url)
    text = invoke("top", "--once", database=database_url).stdout
    (found,) = map(json.loads, invoke("top", "--once", "--format", "json", database=database_url).stdout.splitlines())

    assert "0 open tasks · 0 processes running\n" in text
    assert "linear/linear_workflow:1.0.0  1      0        0" in text
    assert (found["open"], found["templates"][0]["tasks"]) == (0, 1)


def test_a_screen_of_eighty_columns_has_everything_and_the_rates_of_two_looks() -> None:
    text = click.unstyle(overview_text(fleet(130, seconds=2), fleet(), 80, 40))

    lines = text.splitlines()
    assert max(map(len, lines)) <= 80, lines
    assert "payments_00  3        20,000  0       15.0     1" in lines
    assert "████░░░░░░ 37/100" in text
    assert "bank          12" in text
    assert "20003 open tasks · 1 process running · 1 pause · 4 dead letters" in lines[0]


def test_a_low_screen_shows_the_first_rows_of_each_table_and_how_many_there_are() -> None:
    text = overview_text(fleet(queues=30), None, 80, 24)

    assert "and 27 more" in click.unstyle(text)
    assert len(text.splitlines()) <= 24

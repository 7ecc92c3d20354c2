"""The views of a running task say why a step waits that has waited for longer than three seconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click
import psycopg
import pytest

from tasker import App
from tasker.cli.live.feed import Feed
from tasker.cli.live.text import JsonLines, TextView
from tasker.cli.live.tree import Tree
from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke

LINEAR = WORKFLOWS / "linear_math"
SENTENCE = "no live worker serves linear.add: no worker is running in the namespace linear"


class Still(Feed):
    """Time stands still between two looks."""

    def now(self) -> datetime:
        assert self.task
        return self.task.at


@pytest.fixture
def waiting(new_database_url: str) -> str:
    """A task that nobody runs."""
    invoke("template", "register", LINEAR, database=new_database_url)
    arguments = ("task", "submit", "linear/linear_workflow", "--set", "value=1", "--set", "divisor=2")
    return invoke(*arguments, database=new_database_url).stdout.strip()


def set_time(url: str, task: str, seconds: float) -> None:
    """It is so long after the task was submitted, for every session that begins now."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            f"""do $$ begin execute format('alter database %I set tasker.now = %L', current_database(),
                  (select created_at + interval '{seconds} s' from tasker.tasks where task_uuid = '{task}'));
                end $$""".encode()
        )


def seen(url: str, task: str, look: Callable[[Feed], Any]) -> Any:
    """What a view makes of the task after one look at it."""

    async def use() -> Any:
        async with App(url, work=False) as app:
            feed = Still(app.tasks, task)
            await feed.poll()
            await feed.explain()
            return look(feed)

    return asyncio.run(use())


def tree(feed: Feed) -> dict[str, str]:
    """The remarks of the rows on a terminal."""
    from tasker.template.compile import compile_text

    (plan,) = compile_text((LINEAR / "workflow.yaml").read_text()).plans
    rows = Tree(plan).rows(feed.steps, feed.now(), finished=False, height=20, why=feed.why)
    return {row.name: row.note for row in rows if row.explained}


def lines(feed: Feed) -> list[str]:
    """What is written elsewhere, in two looks at the same."""
    written: list[str] = []
    view = TextView(lambda text: written.append(click.unstyle(text)))
    for _ in range(2):
        view.show(feed, [])
    return written


def objects(feed: Feed) -> list[dict[str, Any]]:
    written: list[str] = []
    JsonLines(written.append).show(feed, [])
    return [json.loads(line) for line in written]


def test_a_step_that_has_waited_for_three_seconds_has_its_sentence_and_no_other_step(
    waiting: str, new_database_url: str
) -> None:
    set_time(new_database_url, waiting, 2.9)
    assert seen(new_database_url, waiting, tree) == {}

    set_time(new_database_url, waiting, 3)
    assert seen(new_database_url, waiting, tree) == {"mathematical_add": SENTENCE}


def test_where_there_is_no_terminal_it_is_a_line_that_is_written_once(waiting: str, new_database_url: str) -> None:
    set_time(new_database_url, waiting, 60)
    found = seen(new_database_url, waiting, lines)

    assert [line.partition("  ")[2] for line in found] == [f"mathematical_add: {SENTENCE}"]


def test_a_program_reads_it_as_an_object(waiting: str, new_database_url: str) -> None:
    set_time(new_database_url, waiting, 60)
    waits, task = seen(new_database_url, waiting, objects)

    assert (waits["kind"], waits["reason"], waits["steps"]) == ("waits", "nobody", ["mathematical_add"])
    assert waits["sentence"] == SENTENCE
    assert task["kind"] == "task"


def test_a_long_sentence_has_a_line_of_its_own_on_a_narrow_screen() -> None:
    from rich.console import Console

    from tasker.cli.live.screen import picture
    from tasker.cli.live.tree import LiveRow

    console = Console(width=60, color_system=None)
    with console.capture() as captured:
        console.print(picture([LiveRow("", "add", "enqueued", note=SENTENCE[:54], explained=True)], 60, spare=1))

    assert captured.get().splitlines() == ["add           ○ enqueued", f"  {SENTENCE[:54]}"]


def test_a_sentence_that_is_longer_than_the_screen_is_wide_goes_on_as_far_as_there_is_room() -> None:
    from rich.console import Console

    from tasker.cli.live.screen import picture
    from tasker.cli.live.tree import LiveRow

    def shown(spare: int) -> list[str]:
        console = Console(width=40, color_system=None)
        with console.capture() as captured:
            console.print(picture([LiveRow("", "add", "enqueued", note=SENTENCE, explained=True)], 40, spare=spare))
        return captured.get().splitlines()[1:]

    assert shown(5) == ["  no live worker serves linear.add: no", "  worker is running in the namespace", "  linear"]
    assert shown(2) == ["  no live worker serves linear.add: no", "  worker is running in the namespace li…"]
    assert shown(1) == ["  no live worker serves linear.add: no …"]

"""The table of docs/failure-paths.md: each row is made from tasks that run here."""

from __future__ import annotations

import os
from pathlib import Path

from tests.integration.engine.protocol.failing.conftest import Begin, Run, Story

PAGE = Path(__file__).parents[5] / "docs" / "failure-paths.md"
BEGIN, END = "<!-- truth table -->\n", "<!-- end of the truth table -->"
WORDS = {
    "`fail_task` (default)": "",
    "`continue`": "on_failure: continue",
    "`optional: true`": "optional: true",
    "`skip_cascade`": "on_failure: skip_cascade",
    "`{run: STEP}`": "on_failure: {run: undo}",
    "`compensate`": "on_failure: compensate",
}
STEPS = """
  name: a, WORD
  name: plain, dependencies: [a]
  name: beside, on_failure: skip_cascade
  name: join, type: deferred_convergence, dependencies: [plain, beside]
"""
HEADER = ("`on_failure`", "the step", "steps below it", "a convergence with others", "the task", "dead letter")
SEEN = {"complete": "runs", "cancelled:s": "skipped", "pending": "never starts"}


def _task(story: Story) -> str:
    state, outcome = story.end
    return f"`{state}`" + (f", outcome `{outcome}`" if outcome else "")


async def _row(run: Run, name: str, word: str) -> list[str]:
    steps = STEPS
    branch = "  name: undo\n" if "undo" in word else ""
    if word.endswith("compensate"):
        steps = steps.replace("name: beside,", "name: beside, compensate: u,")
    story = await run(steps.replace(", WORD", f", {word}" if word else "") + branch, "a")
    ends = _task(story)
    if branch:
        ends += "; if STEP fails, too: " + _task(await run(steps.replace("WORD", word) + branch, "a", "undo"))
    states = story.states
    return [
        name,
        f"`{states['a'].partition(':')[0]}`",
        SEEN[states["plain"]],
        SEEN[states["join"]],
        ends,
        "yes" if story.dead_letters else "no",
    ]


def _is_on_the_page(begin: str, end: str, rows: list[list[str]]) -> bool:
    """Compare a table with that of the page; write it to the page with TASKER_RECORD=1."""
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    before, _, rest = PAGE.read_text().partition(begin)
    if os.environ.get("TASKER_RECORD"):
        PAGE.write_text(before + begin + table + end + rest.partition(end)[2])
    return PAGE.read_text().partition(begin)[2].partition(end)[0] == table


async def test_the_table_of_the_page_is_what_tasks_do(run: Run) -> None:
    rows = [list(HEADER), ["---"] * len(HEADER), *[await _row(run, name, word) for name, word in WORDS.items()]]

    assert _is_on_the_page(BEGIN, END, rows), "run this test with TASKER_RECORD=1"


ENDS = ("<!-- table of ends -->\n", "<!-- end of the table of ends -->")
SAGA = """
  name: book, compensate: u
  name: pay, dependencies: [book]
  name: report
"""
LATE = ("book.undo", "report")
CASES = {
    "success": ((), ""),
    "`pay` fails": (("pay",), ""),
    "`pay` and `book.undo` fail": (("pay", "book.undo"), ""),
    "`report` fails": (("report",), ""),
    "`pay` and `report` fail": (("pay", "report"), ""),
    "a cancel after `book`": ((), "cancel"),
    "the same with `--compensate`": ((), "compensate"),
    "the same, and `book.undo` fails": (("book.undo",), "compensate"),
}


async def _end(begin: Begin, name: str, failing: tuple[str, ...], cancel: str) -> list[str]:
    story = begin(SAGA, "on_failure: compensate\nfinally: [report]")
    if cancel:
        lab = story.orchestra.lab
        (claim,) = lab.one.take()
        await story.report(claim)
        lab.one.call("cancel", lab.one.args(task=story.task, reason="", actor="ada", compensate=cancel == "compensate"))
    await story.run(failing)
    ran = [f"`{step}`" for step in story.ran if step in LATE]
    return [name, ", ".join(ran), _task(story), "yes" if story.dead_letters else "no"]


async def test_the_table_of_ends_is_what_tasks_do(begin: Begin) -> None:
    header = ["what happens", "runs at the end", "the task", "dead letter"]
    rows = [header, ["---"] * 4, *[await _end(begin, name, *case) for name, case in CASES.items()]]

    assert _is_on_the_page(*ENDS, rows), "run this test with TASKER_RECORD=1"

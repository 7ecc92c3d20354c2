"""The table of docs/failure-paths.md: each row is made from tasks that run here."""

from __future__ import annotations

import os
from pathlib import Path

from tests.integration.engine.protocol.failing.conftest import Run, Story

PAGE = Path(__file__).parents[5] / "docs" / "failure-paths.md"
BEGIN, END = "<!-- truth table -->\n", "<!-- end of the truth table -->"
WORDS = {
    "`fail_task` (default)": "",
    "`continue`": "on_failure: continue",
    "`optional: true`": "optional: true",
    "`skip_cascade`": "on_failure: skip_cascade",
    "`{run: STEP}`": "on_failure: {run: undo}",
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


async def test_the_table_of_the_page_is_what_tasks_do(run: Run) -> None:
    rows = [list(HEADER), ["---"] * len(HEADER), *[await _row(run, name, word) for name, word in WORDS.items()]]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    before, _, rest = PAGE.read_text().partition(BEGIN)
    if os.environ.get("TASKER_RECORD"):
        PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2])

    assert PAGE.read_text().partition(BEGIN)[2].partition(END)[0] == table, "run this test with TASKER_RECORD=1"

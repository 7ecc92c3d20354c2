"""The views of a running task: lines, rows of the tree, and what they leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import click
import pytest

from tasker.cli.live.feed import Feed
from tasker.cli.live.screen import Screen, picture
from tasker.cli.live.showing import view_on
from tasker.cli.live.text import TextView
from tasker.cli.live.tree import ABSENT, LiveRow, Tree, bar, fitted
from tasker.template.compile import compile_text
from tasker.template.plan import Plan
from tasker.views.progress import ReportedProgress, StepProgress, TaskProgress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEMPLATE = """
name: shop
namespace: shop
version: 1.0.0
steps:
  - {name: begin, handler: h}
  - {name: left, dependencies: [begin], handler: h}
  - {name: plan, type: batchable, dependencies: [begin], handler: h}
  - {name: work, type: batch_worker, dependencies: [plan], handler: h}
  - {name: collect, type: deferred_convergence, dependencies: [work], handler: h}
  - {name: end, dependencies: [begin, left], handler: h}
"""


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def step(name: str, state: str, *, template_step: str | None = None, at: float = 0, **fields: Any) -> StepProgress:
    return StepProgress(name, template_step or name, state, fields.pop("attempts", 1), 3, after(at), **fields)


class Known(Feed):
    """A feed that knows these steps."""

    def __init__(self, *steps: StepProgress, finished: bool = False, pauses: Sequence[Mapping[str, Any]] = ()) -> None:
        self.steps = {step.name: step for step in steps}
        self.task = TaskProgress("steps_in_process", finished, len(steps), 0, 0, NOON, steps, pauses)

    def now(self) -> datetime:
        return after(10)


@pytest.fixture(scope="module")
def plan() -> Plan:
    (found,) = compile_text(TEMPLATE).plans
    return found


def rows(plan: Plan, *steps: StepProgress, finished: bool = False, height: int = 100) -> dict[str, LiveRow]:
    found = Tree(plan).rows({step.name: step for step in steps}, after(10), finished=finished, height=height)
    return {row.name: row for row in found}


def lines(*looks: list[StepProgress]) -> list[str]:
    """What the plain view writes, without colours and times of day."""
    written: list[str] = []
    view = TextView(written.append)
    for look in looks:
        view.show(Known(*look), look)
    return [click.unstyle(line).partition("  ")[2] for line in written]


def reported(percent: float | None, at: float, **more: Any) -> ReportedProgress:
    return ReportedProgress(
        percent, more.get("done"), more.get("total"), more.get("message"), after(at), more.get("eta")
    )


def test_what_a_handler_reports_is_shown_with_what_is_left(plan: Plan) -> None:
    told = reported(40, 5, done=4, total=10, message="reading\nb.csv", eta=65.0)

    note = rows(plan, step("begin", "in_progress", started_at=NOON, reported=told))["begin"].note

    assert note == "████░░░░░░░░ 40 %, 4 of 10, about 1 m 00 s left, reading b.csv"


def test_a_count_without_an_end_is_a_count(plan: Plan) -> None:
    told = reported(None, 5, done=1234.0)
    assert rows(plan, step("begin", "in_progress", reported=told))["begin"].note == "1,234"


def test_plain_lines_tell_of_reports_every_five_seconds() -> None:
    at = [
        step("begin", "in_progress", reported=reported(share, second)) for share, second in ((1, 0), (20, 2), (30, 5))
    ]

    told = lines(*([each] for each in at))

    assert [line.rpartition("  ")[2] for line in told] == ["1 %", "30 %"]


# --- rows of the tree


def test_a_step_that_runs_shows_for_how_long(plan: Plan) -> None:
    row = rows(plan, step("begin", "in_progress", started_at=after(8)))["begin"]

    assert (row.state, row.attempt, row.time) == ("in_progress", "", "2.0 s")


def test_a_step_that_is_complete_shows_how_long_it_took(plan: Plan) -> None:
    row = rows(plan, step("begin", "complete", at=0.25, started_at=NOON, duration_ms=240))["begin"]

    assert (row.state, row.time) == ("complete", "240 ms")


def test_a_step_that_waits_for_a_retry_counts_down_and_says_why(plan: Plan) -> None:
    error = {"type": "network_error", "message": "the line\nis dead", "attempt": 2}
    row = rows(plan, step("begin", "waiting_for_retry", attempts=2, due_at=after(11.5), error=error))["begin"]

    assert (row.attempt, row.time, row.note) == ("attempt 2/3", "in 2 s", "network_error: the line is dead")


def test_a_step_that_joins_branches_says_what_it_waits_for(plan: Plan) -> None:
    assert rows(plan, step("end", "pending", attempts=0))["end"].note == "after begin + left"


def test_the_instances_of_a_batch_worker_are_one_row_with_a_bar(plan: Plan) -> None:
    found = rows(
        plan,
        step("work_001", "complete", template_step="work", at=4, started_at=after(1)),
        step("work_002", "in_progress", template_step="work", started_at=after(2), items_processed=30),
        step("work_003", "in_progress", template_step="work", started_at=after(2), items_processed=5),
        step("work_004", "enqueued", template_step="work", attempts=0),
    )

    row = found["work x 4"]
    assert (row.state, row.attempt, row.time) == ("in_progress", "1/4 done", "9.0 s")
    assert row.note == "███░░░░░░░░░ · 2 in_progress · 35 items"


def test_a_failed_instance_speaks_for_its_batch(plan: Plan) -> None:
    error = {"type": "validation_error", "message": "row 7", "attempt": 1}
    steps = [step(f"work_{n:03}", "complete", template_step="work", started_at=NOON) for n in range(1, 9)]
    row = rows(plan, *steps, step("work_009", "error", template_step="work", error=error))["work x 9"]

    assert row.state == "error"
    assert row.note == f"{bar(8, 9)} · 1 error · validation_error: row 7"


def test_a_step_that_was_never_created_is_said_at_the_end_only(plan: Plan) -> None:
    running, ended = rows(plan)["collect"], rows(plan, finished=True)["collect"]

    assert (running.state, running.note) == (ABSENT, "")
    assert (ended.state, ended.note) == (ABSENT, "not created")


def test_what_does_not_fit_is_counted_and_what_is_urgent_stays(plan: Plan) -> None:
    many = [LiveRow("", f"s{n}", "complete") for n in range(8)] + [
        LiveRow("", "bad", "error"),
        LiveRow("", "run", "in_progress"),
    ]

    found = fitted(many, 4)

    assert [row.name for row in found] == ["s0", "bad", "run", "and 7 steps more: 7 complete"]
    assert fitted(many, 10) == many


# --- the screen


@pytest.mark.parametrize("width", [30, 60, 100])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    from rich.console import Console

    out = StringIO()
    many = [LiveRow("└─ ", "a_step_with_a_very_long_name", "waiting_for_retry", "1/3", "in 1.0 s", "x" * 200)]
    Console(file=out, width=width).print(picture([*many, LiveRow("", "and 3 steps more: 3 complete", "")], width))

    assert all(len(line) <= width for line in out.getvalue().splitlines())
    assert "and 3 steps more" in out.getvalue()


@pytest.mark.parametrize(("width", "spare", "own"), [(80, 5, True), (80, 0, False), (120, 5, False)])
def test_why_a_step_failed_gets_a_line_of_its_own_where_there_is_little_room(width: int, spare: int, own: bool) -> None:
    from rich.console import Console

    out = StringIO()
    note = "network_error: the provider did not answer in time"
    rows = [
        LiveRow("├─ ", "charge_the_customer", "error", "attempt 3/3", "1.2 s", note),
        LiveRow("└─ ", "end", "pending"),
    ]
    Console(file=out, width=width).print(picture(rows, width, spare))

    assert (f"     {note}" in out.getvalue().splitlines()) == own


def test_the_screen_shows_the_tree_and_gives_it_back_without_the_footer(plan: Plan) -> None:
    out = StringIO()
    screen = Screen(out, plan, "Ctrl-C ends")

    screen.show(Known(step("begin", "in_progress", started_at=NOON)), [])
    screen.say("stopping")
    screen.close()

    assert "begin" in out.getvalue()
    assert "stopping" not in out.getvalue()


class Terminal(StringIO):
    """A stream that is drawn on."""

    def isatty(self) -> bool:
        return True


def test_the_footer_counts_from_the_first_step_however_late_one_looks(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    out = Terminal()
    screen = Screen(out, plan, "Ctrl-C ends")
    begun = step("begin", "in_progress", started_at=NOON - timedelta(minutes=2))
    screen.show(Known(begun, step("other", "in_progress", started_at=NOON)), [])
    screen.show(Known(begun, finished=True), [])
    screen.close()

    assert "0/2 steps · steps_in_process · 2 m 10 s · Ctrl-C ends" in out.getvalue()
    assert "0/1 steps · steps_in_process · Ctrl-C ends" in out.getvalue(), "how long it took stands below"


def paused(**target: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("namespace", "template", "step", "task", "queue"))
    return {**nothing, **target, "actor": "ops", "reason": "wrong prices", "paused_at": NOON}


@pytest.mark.parametrize(
    ("target", "said", "command"),
    [
        ({"namespace": "shop"}, "shop", "shop"),
        ({"namespace": "shop", "template": "order"}, "shop/order", "--template shop/order"),
        ({"namespace": "shop", "template": "order", "step": "pay"}, "shop/order/pay", "--step shop/order/pay"),
        ({"namespace": "shop", "task": "01a1"}, "task 01a1", "--task 01a1"),
        ({"queue": "results"}, "queue results", "--queue results"),
    ],
)
def test_both_views_say_what_pause_holds_the_task_and_how_it_ends(
    target: dict[str, str], said: str, command: str, plan: Plan
) -> None:
    held = Known(step("begin", "enqueued"), pauses=[paused(**target)])
    written: list[str] = []
    view = TextView(written.append)
    for feed in (held, held, Known(step("begin", "enqueued"))):
        view.show(feed, [])
    out = StringIO()
    screen = Screen(out, plan, "Ctrl-C ends")
    screen.show(held, [])
    screen.close()

    line, over = written
    assert line.startswith(f"{said} is paused since ")
    assert line.endswith(f"by ops: wrong prices; to resume: tasker resume {command}")
    assert over == "no longer paused"
    assert f"{said} is paused since " in out.getvalue()
    assert f"to resume: tasker resume {command}" in out.getvalue()


@pytest.mark.parametrize(
    ("terminal", "term", "kind"), [(True, "xterm", Screen), (True, "dumb", TextView), (False, "xterm", TextView)]
)
def test_a_terminal_gets_a_tree_and_everything_else_gets_lines(
    terminal: bool, term: str, kind: type, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", term)

    assert isinstance(view_on(stream, plan), kind)


# --- lines


def test_each_change_is_one_line_and_its_way_there_is_none() -> None:
    assert lines(
        [step("a", "enqueued", attempts=0), step("b", "pending", attempts=0)],
        [step("a", "in_progress", at=1, started_at=after(1))],
        [step("a", "in_progress", at=1, started_at=after(1))],
        [step("a", "complete", at=3, started_at=after(1), duration_ms=2000)],
    ) == ["a: ▶ in_progress", "a: ✔ complete  2.0 s"]


def test_a_retry_says_its_attempt_its_delay_and_the_reason() -> None:
    error = {"type": "network_error", "message": "down", "attempt": 1}
    waiting = step("a", "waiting_for_retry", at=1, duration_ms=1000, due_at=after(3), error=error)

    assert lines([waiting]) == ["a: ↻ waiting_for_retry  attempt 1/3  1.0 s, again in 2 s, network_error: down"]


def test_a_retry_that_comes_in_less_than_a_second_shows_milliseconds(plan: Plan) -> None:
    waiting = step("begin", "waiting_for_retry", at=9.95, due_at=after(10.05))

    assert lines([waiting]) == ["begin: ↻ waiting_for_retry  attempt 1/3  again in 100 ms"]
    assert rows(plan, waiting)["begin"].time == "in 50 ms"


def test_lines_are_in_the_order_of_time() -> None:
    late, early = step("a", "complete", at=2, started_at=NOON), step("b", "complete", at=1, started_at=NOON)

    assert [line[0] for line in lines([late, early])] == ["b", "a"]


def test_items_of_a_running_step_are_told_now_and_then() -> None:
    looks = [[step("a", "in_progress", at=second, items_processed=second)] for second in range(12)]

    assert lines(*looks) == ["a: ▶ in_progress", "a: ▶ in_progress  5 items", "a: ▶ in_progress  10 items"]


async def test_a_run_that_stops_does_not_complain_that_nobody_serves_what_it_leaves() -> None:
    left = step("left", "enqueued", unserved="shop.left")

    class Tasks:
        async def progress(self, task_uuid: str, since: datetime | None) -> TaskProgress:
            return TaskProgress("steps_in_process", False, 1, 0, 0, NOON, [left], [])

    feed = Feed(Tasks(), "0199c1f4-8a52-7c3e-9b1d-5d3a52000000")  # type: ignore[arg-type]  # all that it asks
    assert [each.unserved for each in await feed.poll()] == ["shop.left"]

    feed.stopping = True

    assert [each.unserved for each in await feed.poll()] == [None]

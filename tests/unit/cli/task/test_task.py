"""`tasker task`: mistakes that need no database, and how tasks are shown."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from tasker.cli.commands import dead_letter_text as dead_letters
from tasker.cli.render.task import history_text, list_text
from tasker.views.dead_letters import DeadLetter
from tasker.views.task_lists import TaskSummary, TransitionDetail
from tests.support.command_line import invoke

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def transition(to: str, origin: str | None, at: float, **fields: Any) -> TransitionDetail:
    given = {"kind": "step", "step": "pay", "worker": None, "attempt": 1, "metadata": None, "execution_time_ms": None}
    told = {"from_state": origin, "to_state": to, "at": NOON + timedelta(seconds=at), "sort_key": 1}
    return TransitionDetail(**given | told | fields)


@pytest.mark.parametrize("command", [("task", "list"), ("task", "show", "01a1fad7"), ("template", "list")])
def test_where_nothing_has_run_nothing_is_made(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)

    result = invoke(*command)

    assert result.exit_code == 2
    assert "no database in .tasker/postgres" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_does_not_exist_is_refused_with_those_that_do() -> None:
    result = invoke("task", "list", "--status", "done")

    assert result.exit_code == 2
    assert "'waiting_for_retry'" in result.stderr


def test_a_list_says_how_far_each_task_is() -> None:
    row = TaskSummary(
        "01a1fad7", "shop", "checkout", "1.0.0", "error", 0, total=4, done=2, failed=1, created_at=NOON,
        completed_at=NOON + timedelta(seconds=2), unserved=None, paused=None,
    )  # fmt: skip

    line = click.unstyle(list_text([row])).splitlines()[1]

    assert line.startswith("01a1fad7  shop/checkout:1.0.0  ✖ error  2/4, 1 failed")
    assert line.endswith("2.0 s")
    assert list_text([]) == "no tasks"
    partial = replace(row, status="complete", failed=0, outcome="partial")
    assert "✔ complete, partial  2/4" in click.unstyle(list_text([partial]))


LISTED = TaskSummary(
    "019aabcd-1234-7abc-8def-000000000000", "fulfillment", "order_fulfillment_with_returns", "12.10.3",
    "waiting_for_dependencies", priority=0, total=1200, done=1150, failed=12, created_at=NOON, completed_at=None,
    unserved="shop.charge", paused={
        "namespace": "fulfillment", "template": None, "step": None, "task": None, "actor": "ops",
        "reason": "the provider of payments is down until noon", "paused_at": NOON,
    },
)  # fmt: skip


@pytest.mark.parametrize("width", [80, 100, 140])
def test_on_a_narrow_screen_a_list_says_the_same_in_rows_that_fit(width: int) -> None:
    twin = replace(LISTED, task_uuid="019aabcd-1234-7abf-8def-000000000000", template="pay", paused=None)
    old = replace(LISTED, task_uuid="019a0000-1234-7abf-8def-000000000000", status="complete", unserved=None)
    rows = [LISTED, twin, replace(old, paused=None, failed=0)]
    text = click.unstyle(list_text(rows, width, NOON + timedelta(minutes=3, seconds=5)))
    lines = text.splitlines()

    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines if line.startswith("019a")] == [
        "019aabcd-1234-7abc", "019aabcd-1234-7abf", "019a0000-1234-7abf",
    ]  # fmt: skip
    assert "turns  " in text
    assert "1150/1200 ✖12  3 m" in text
    assert "fulfillment is paused since" in text
    assert "until noon" in " ".join(text.split())
    assert text.count("no live worker has handler shop.charge") == 2


def test_where_a_list_fits_the_screen_nothing_is_left_out_of_it() -> None:
    row = replace(LISTED, paused=None, unserved=None, template="pay")
    assert list_text([row], 140) == list_text([row])
    assert LISTED.task_uuid in list_text([LISTED], None)


@pytest.mark.parametrize(
    ("age", "told"),
    [({"days": 9, "hours": 1}, "9 d"), ({"hours": 47}, "47 h"), ({"minutes": 119}, "119 m"), ({"seconds": 7}, "7 s")],
)
def test_a_short_list_says_how_old_a_task_is(age: dict[str, int], told: str) -> None:
    assert list_text([LISTED], 80, NOON + timedelta(**age)).splitlines()[1].endswith(f" {told}")


def test_the_history_shows_the_time_between_transitions_and_who_did_what() -> None:
    rows = [
        transition("pending", None, 0, attempt=0),
        transition("in_progress", "enqueued", 1.5, worker="01a1fad7-4acb-79cd-a60e-246c450eefa7"),
        transition("complete", "enqueued_for_orchestration", 1.52, execution_time_ms=12),
        transition(
            "complete", "evaluating_results", 1.52, kind="task", step=None, metadata={"actor": "me", "reason": ""}
        ),
    ]

    lines = [" ".join(line.split()[1:]) for line in click.unstyle(history_text(rows)).splitlines()[1:]]

    assert lines == [
        "pay · pending",
        "+1.5 s pay enqueued ▶ in_progress 1 worker 450eefa7",
        "+20 ms pay enqueued_for_orchestration ✔ complete 1 12 ms",
        "task evaluating_results ✔ complete 1 actor: me",
    ]


TASKS = ["01a2059a-dab8-7c22-b9ea-d9416f000000", "01a2059b-dab8-7c22-b9ea-d9416f000000"]


def dead_letter(task: str) -> DeadLetter:
    known: dict[str, Any] = {
        "dlq_entry_uuid": "01a2059a-e71f-7836-a13c-59247c16c11f",
        "task_uuid": task,
        "dlq_reason": "max_retries_exceeded",
        "resolution_status": "pending",
        "dlq_timestamp": NOON,
        "current_state": "error",
        "task_snapshot": {"namespace": "shop", "task_name": "order"},
    }
    return DeadLetter(**{field.name: known.get(field.name) for field in fields(DeadLetter)})


def test_dead_letters_are_told_by_their_tasks_where_two_identifiers_have_no_room() -> None:
    found = [dead_letter(task) for task in TASKS]
    narrow, whole = (click.unstyle(dead_letters.list_text(found, width)) for width in (80, None))

    assert max(map(len, narrow.splitlines())) <= 80
    assert [line.split()[:2] for line in narrow.splitlines()[1:]] == [[task[:13], "shop/order"] for task in TASKS]
    assert all(task in whole and found[0].dlq_entry_uuid in whole for task in TASKS)

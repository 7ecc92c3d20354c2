"""What people see who look with SQL agrees with what the engine's own reports say of the same tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tasker import App
from tasker.template.plan import RetryPolicy
from tasker.views.model import encode
from tasker.views.tasks import Task, TaskReport
from tests.support.engine_fixture import Lab, fail, ok, operator, retry
from tests.support.fleets.work import FACTOR, assert_linear, work_of
from tests.support.random_plans import Spec

DIAMOND = (
    *(Spec("a"), Spec("b", depends_on=("a",)), Spec("c", depends_on=("a",)), Spec("d", depends_on=("b", "c"))),
    Spec("e", depends_on=("a", "d")),  # also a shorter way
)

COMPARED = (
    *("total_steps", "pending_steps", "in_progress_steps", "completed_steps", "failed_steps", "execution_status"),
    *("recommended_action", "completion_percentage", "health_status"),
)


@pytest.fixture(scope="module")
def lab(module_database_url: str) -> Iterator[Lab]:
    """One lab for the module: its tasks are made once, and only looked at."""
    lab = Lab(module_database_url)
    yield lab
    lab.close()


@pytest.fixture(scope="module", autouse=True)
def tasks(lab: Lab) -> dict[str, str]:
    """Tasks in many states by what became of them, made first: whatever is there before would run with them."""
    single = lab.plan(Spec("only", retry=RetryPolicy(max_attempts=3)), name="single")
    made: dict[str, str] = {"complete": lab.submit_one(lab.chain(2))}
    lab.one.run_all()
    made["half"], claims = lab.running(lab.plan(*DIAMOND, name="diamond"))
    lab.one.finish(claims["a"])
    claims = {claim["name"]: claim for claim in lab.one.claim()}
    lab.one.advance(ok(claims["b"]), retry(claims["c"], delay_ms=90_000))
    made["running"], _ = lab.running(single)
    made["due"], claims = lab.running(single)
    lab.one.advance(retry(claims["only"], delay_ms=0))
    made["failed at once"], claims = lab.running(single)
    lab.one.advance(fail(claims["only"]))
    made["one failed, one runs"], claims = lab.running(lab.plan(Spec("x"), Spec("y"), name="pair"))
    lab.one.advance(fail(claims["x"]))
    made["resolved"], claims = lab.running(lab.plan(*DIAMOND[:2], name="resolved"))
    lab.one.advance(fail(claims["a"]))
    lab.one.advance(operator("resolve", lab.steps(made["resolved"])["a"]))
    made["cancelled"] = lab.submit_one(single)
    lab.one.call("cancel", {"tasks": [made["cancelled"]], "reason": "no more"})
    lab.window = 1
    made["queued"], made["held"] = lab.submit(single, {"priority": 1}, {"priority": 5})
    return made


def rows(lab: Lab, query: str, *params: Any) -> list[dict[str, Any]]:
    return [row._asdict() for row in lab.observer.rows(query, *params)]


def readiness(lab: Lab, task: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows(lab, "select * from tasker.get_step_readiness_status(%s)", task)}


@pytest.fixture(scope="module")
def told(module_database_url: str, tasks: dict[str, str]) -> dict[str, tuple[TaskReport, dict[str, Any]]]:
    """What a program and a client are told of these tasks."""

    async def read() -> dict[str, tuple[TaskReport, dict[str, Any]]]:
        async with App(module_database_url, work=False) as app:
            return {
                name: (await app.tasks.report(task), encode(Task, await app.views.task(task)))
                for name, task in tasks.items()
            }

    return asyncio.run(read())


def test_readiness_agrees_with_what_a_program_is_told(
    lab: Lab, tasks: dict[str, str], told: dict[str, tuple[TaskReport, dict[str, Any]]]
) -> None:
    for name, task in tasks.items():
        steps, reports = readiness(lab, task), told[name][0].steps
        done = {step for step, report in reports.items() if report.state in ("complete", "resolved_manually")}
        assert {step: (row["current_state"], row["attempts"], row["retry_limit"]) for step, row in steps.items()} == {
            step: (report.state, report.attempts, report.max_attempts) for step, report in reports.items()
        }, name
        for step, report in reports.items():
            row = steps[step]
            assert (row["total_parents"], row["completed_parents"]) == (
                len(report.depends_on),
                len(done & set(report.depends_on)),
            ), (name, step)
            assert row["dependencies_satisfied"] == (lab.steps(task)[step].unmet == 0), (name, step)
            assert (row["last_failure_at"] is not None) == bool(report.failures), (name, step)
            assert (row["next_retry_at"] is not None) == (report.state == "waiting_for_retry"), (name, step)


def test_ready_is_what_could_run_and_is_in_no_queue(lab: Lab, tasks: dict[str, str]) -> None:
    ready = {name: len(rows(lab, "select * from tasker.get_ready_steps(%s)", task)) for name, task in tasks.items()}

    assert {name for name, count in ready.items() if count} == {"due", "held"} | (
        {"queued"} if lab.states(tasks["queued"])["only"] == "pending" else set()
    )


def test_the_stored_pause_is_told_in_the_terms_of_the_formula(lab: Lab, tasks: dict[str, str]) -> None:
    row = readiness(lab, tasks["half"])["c"]

    assert row["backoff_request_seconds"] == 90
    assert row["next_retry_at"] == lab.observer.value(
        "select tasker.calculate_step_next_retry_time(%s, %s, null, 1)",
        row["backoff_request_seconds"],
        row["last_attempted_at"],
    )


def test_one_call_answers_for_many_tasks_and_for_some_steps(lab: Lab, tasks: dict[str, str]) -> None:
    alone = [row for task in tasks.values() for row in readiness(lab, task).values()]
    together = rows(lab, "select * from tasker.get_step_readiness_status_batch(%s::uuid[])", [*tasks.values()])
    row = readiness(lab, tasks["half"])["d"]

    def key(row: dict[str, Any]) -> str:
        return str(row["workflow_step_uuid"])

    assert sorted(together, key=key) == sorted(alone, key=key)
    assert [row] == rows(
        lab,
        "select * from tasker.get_step_readiness_status(%s, %s::uuid[])",
        tasks["half"],
        [row["workflow_step_uuid"]],
    )
    assert not lab.observer.value("select tasker.check_step_dependencies(%s)", row["workflow_step_uuid"])
    assert lab.observer.value("select tasker.check_step_dependencies(%s)", lab.steps(tasks["resolved"])["b"][0])


@pytest.mark.parametrize(
    ("attempts", "most", "retryable", "state", "back_off", "eligible", "ready"),
    [
        (0, 3, True, "pending", None, True, True),
        (0, 1, False, "pending", None, True, True),
        (1, 3, True, "waiting_for_retry", "future", True, False),
        (1, 3, True, "waiting_for_retry", "past", True, True),
        (2, 2, True, "waiting_for_retry", "past", False, False),
        (1, 3, False, "waiting_for_retry", "past", False, False),
        (1, 3, True, "error", None, True, False),
        (1, 3, True, "in_progress", None, True, False),
        (1, 3, True, "resolved_manually", None, True, False),
    ],
)
def test_the_table_of_readiness_holds(
    lab: Lab, attempts: int, most: int, retryable: bool, state: str, back_off: str | None, eligible: bool, ready: bool
) -> None:
    """Answer of the published function for a row that exists during this test only."""
    task = lab.submit_one(lab.plan(Spec("only"), name="table"))
    seconds = {None: None, "past": -5, "future": 60}[back_off]
    with lab.observer.connection.transaction(force_rollback=True):
        lab.observer.execute(
            """update tasker.workflow_steps set attempts = %s, max_attempts = %s, retryable = %s, state = %s,
              due_at = tasker.now() + make_interval(secs => %s) where task_uuid = %s""",
            *(attempts, most, retryable, state, seconds, task),
        )
        row = readiness(lab, task)["only"]

    assert (row["retry_eligible"], row["ready_for_execution"]) == (eligible, ready)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ((7, "2026-01-01", "2025-01-01", 3), 7),
        ((900, "2026-01-01", None, 3), 900),
        ((None, None, "2026-01-01", 3), 8),
        ((None, "2025-01-01", "2026-01-01", 0), 1),
        ((None, None, "2026-01-01", 100), 60),
        ((None, None, "2026-01-01", 999_999), 60),
        ((None, None, None, 3), None),
    ],
)
def test_the_next_attempt_is_where_it_was_asked_for_else_by_powers_and_never_overflows(
    lab: Lab, given: tuple[Any, ...], seconds: int | None
) -> None:
    moment = "tasker.calculate_step_next_retry_time(%s, %s, %s, %s)"
    query = f"select extract(epoch from {moment} - timestamptz '2026-01-01')"

    assert lab.observer.value(query, *given) == seconds


def test_the_context_agrees_with_what_the_client_is_told(
    lab: Lab, tasks: dict[str, str], told: dict[str, tuple[TaskReport, dict[str, Any]]]
) -> None:
    contexts = {
        str(row["task_uuid"]): row
        for row in rows(lab, "select * from tasker.get_task_execution_contexts_batch(%s::uuid[])", [*tasks.values()])
    }
    for name, task in tasks.items():
        if name == "due":  # ready by its steps; the counters of its row say so when it is promoted
            assert contexts[task]["execution_status"] == "has_ready_steps"
            continue
        view, row = told[name][1], contexts[task]
        assert {key: row[key] for key in COMPARED} == {key: view[key] for key in COMPARED}, name
        assert row["status"] == view["status"], name
    assert contexts[tasks["half"]] == rows(lab, "select * from tasker.get_task_execution_context(%s)", tasks["half"])[0]


def test_a_failure_blocks_for_good_also_beside_what_goes_on(lab: Lab, tasks: dict[str, str]) -> None:
    query = "select * from tasker.get_task_execution_context(%s)"
    (beside,) = rows(lab, query, tasks["one failed, one runs"])
    (at_once,) = rows(lab, query, tasks["failed at once"])

    assert (beside["execution_status"], beside["in_progress_steps"]) == ("blocked_by_failures", 1)
    assert (at_once["permanently_blocked_steps"], at_once["blocked_by_errors"]) == (1, True)


def test_levels_and_ancestors_of_a_diamond(lab: Lab, tasks: dict[str, str]) -> None:
    steps = lab.steps(tasks["half"])
    uuids = {name: row.workflow_step_uuid for name, row in steps.items()}
    levels = {
        row["workflow_step_uuid"]: row["dependency_level"]
        for row in rows(lab, "select * from tasker.calculate_dependency_levels(%s)", tasks["half"])
    }
    above = rows(lab, "select * from tasker.get_step_transitive_dependencies(%s)", uuids["d"])

    assert {name: levels[uuid] for name, uuid in uuids.items()} == {"a": 0, "b": 1, "c": 1, "d": 2, "e": 3}
    assert lab.observer.value("select tasker.calculate_step_depth(%s)", uuids["d"]) == 2
    assert [(row["step_name"], row["distance"], row["processed"], row["results"]) for row in above] == [
        ("b", 1, True, {"by": "b"}),
        ("c", 1, False, None),
        ("a", 2, True, {"by": "a"}),
    ]
    of_e = rows(lab, "select * from tasker.get_step_transitive_dependencies(%s)", uuids["e"])
    assert [(row["step_name"], row["distance"]) for row in of_e] == [("a", 1), ("d", 1), ("b", 2), ("c", 2)]


@pytest.mark.parametrize(
    ("parent", "child", "closes"), [("d", "a", True), ("a", "a", True), ("a", "d", False), ("c", "b", False)]
)
def test_a_cycle_is_seen_before_it_is_closed(
    lab: Lab, tasks: dict[str, str], parent: str, child: str, closes: bool
) -> None:
    steps = lab.steps(tasks["half"])

    assert (
        lab.observer.value(
            "select tasker.detect_cycle(%s, %s)", steps[parent].workflow_step_uuid, steps[child].workflow_step_uuid
        )
        is closes
    )


def test_the_next_tasks_are_found_whatever_is_blocked_or_waits(lab: Lab, tasks: dict[str, str]) -> None:
    all_found = rows(lab, "select * from tasker.get_next_ready_tasks(100)")
    found = [row for row in all_found if str(row["task_uuid"]) in tasks.values()]
    info = {name: rows(lab, "select * from tasker.get_task_ready_info(%s)", task) for name, task in tasks.items()}
    ready = {name for name, told in info.items() if told}

    assert [str(row["task_uuid"]) for row in found] == sorted(
        (tasks[name] for name in ready), key=lambda task: -lab.task(task).priority
    )
    assert {"due", "held"} <= ready
    assert rows(lab, "select * from tasker.get_next_ready_task()")[0]["task_uuid"] == all_found[0]["task_uuid"]
    assert {row["ready_steps_count"] for row in found} == {1}


def test_priority_grows_with_waiting(lab: Lab, tasks: dict[str, str]) -> None:
    priority = "select computed_priority from tasker.get_task_ready_info(%s, %s)"

    own = lab.task(tasks["held"]).priority
    waiting = lab.session()
    waiting.set_time(7200)

    assert own + 2 <= waiting.value(priority, tasks["held"], 1.0) < own + 2.1
    assert waiting.value(priority, tasks["held"], 0) == own


def test_counts_and_rates_are_those_of_the_rows(lab: Lab, tasks: dict[str, str]) -> None:
    (counts,) = rows(lab, "select * from tasker.get_system_health_counts()")
    (metrics,) = rows(lab, "select * from tasker.get_analytics_metrics()")
    told = lab.observer.core("performance", {})
    states = dict(lab.observer.rows("select state, count(*) from tasker.tasks group by 1"))

    assert {state: counts[f"{state}_tasks"] for state in states} == states
    assert counts["total_tasks"] == sum(states.values())
    assert sum(count for name, count in counts.items() if name.endswith("_steps")) == 2 * counts["total_steps"]
    assert (metrics["completion_count"], metrics["error_count"]) == (told["completed"], told["failed"])
    assert metrics["active_tasks_count"] == told["active"]
    reached = metrics["calculated_at"] - metrics["analysis_period_start"]
    assert reached == timedelta(hours=1)


def test_the_slowest_are_counted_by_their_attempts_and_can_be_filtered(lab: Lab, tasks: dict[str, str]) -> None:
    steps = rows(
        lab, "select * from tasker.get_slowest_steps(namespace_filter => %s, task_name_filter => 'pair')", lab.namespace
    )
    ended = rows(
        lab, "select * from tasker.get_slowest_tasks(limit_count => 100, namespace_filter => %s)", lab.namespace
    )

    assert [(row["step_name"], row["execution_count"], row["error_rate"]) for row in steps] == [("x", 1, 1)]
    assert {row["task_name"]: row["error_count"] for row in ended} == {"chain": 0, "single": 1}
    assert not rows(lab, "select * from tasker.get_slowest_tasks(tasker.now() + interval '1 hour')")


def test_what_would_write_says_what_to_do_instead(lab: Lab, tasks: dict[str, str]) -> None:
    for call in ("tasker.set_step_backoff_atomic(%s, 5)", "tasker.finalize_task_completion(%s)"):
        with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
            lab.observer.execute(f"select {call}", tasks["half"])
        assert caught.value.diag.message_hint


def test_the_work_grows_with_the_steps_of_a_task_and_no_faster(lab: Lab) -> None:
    def stacked(count: int) -> str:
        """Diamonds on top of each other: a path for each subset of them."""
        specs = [Spec("t0")]
        for i in range(count):
            specs += [Spec(f"{side}{i}", depends_on=(f"t{i}",)) for side in "lr"]
            specs += [Spec(f"t{i + 1}", depends_on=(f"l{i}", f"r{i}"))]
        return lab.submit_one(lab.plan(*specs, name=f"stack{count}"))

    small, large = stacked(20), stacked(20 * FACTOR)
    for query in (
        "select count(*) from tasker.get_task_execution_context(%s)",
        "select count(*) from tasker.calculate_dependency_levels(%s)",
        "select count(*) from tasker.workflow_steps s, tasker.get_step_transitive_dependencies(s.workflow_step_uuid) "
        "where s.task_uuid = %s and s.name = 't20'",
    ):
        of_small, of_large = (work_of(lab.one, lambda q=query, t=task: lab.one.value(q, t)) for task in (small, large))
        assert_linear(of_small, of_large)

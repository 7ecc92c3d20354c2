"""Tasks that nothing moves any more are found, recorded and ended; those that move are left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tasker.engine.calls import Engine
from tasker.messaging import MessagingService
from tasker.messaging.backends import load_backend
from tasker.orchestration.dead_letters import StalenessSearch
from tasker.settings.execution import Actions, BatchProcessing, DeadLetterSettings, Staleness
from tasker.template.plan import Plan
from tests.support.engine_fixture import Direct, Lab, fail, ok, operator, retry
from tests.support.random_plans import RetryPolicy, Spec

MINUTE = 60.0
TWO_MINUTES = {"max_waiting_for_dependencies_minutes": 2, "max_steps_in_process_minutes": 2}


def at(lab: Lab, minutes: float) -> None:
    """The second session lives so many minutes after the first task was made: no time passes between two calls."""
    moment = "(select min(created_at) from tasker.tasks) + %s * interval '1 minute'"
    lab.two.execute(f"select set_config('tasker.now', ({moment})::text, false)", minutes)


def search(lab: Lab, minutes: float, **more: Any) -> list[dict[str, Any]]:
    """What a search finds that takes place so many minutes after the first task was made."""
    at(lab, minutes)
    return list(lab.two.call("stale", more).get("stale") or ())


def entries(lab: Lab, task: str) -> list[Any]:
    return lab.observer.rows("select * from tasker.tasks_dlq where task_uuid = %s order by dlq_timestamp", task)


def health(lab: Lab, minutes: float, task: str) -> str:
    at(lab, minutes)
    query = "select health_status from tasker.v_task_staleness_monitoring where task_uuid = %s"
    return str(lab.two.value(query, task))


def declared(lab: Lab, *specs: Spec, **lifecycle: Any) -> Plan:
    return replace(lab.plan(*specs), lifecycle=lifecycle)


def tried(lab: Lab, *, delay_ms: int = 1000) -> tuple[str, Plan]:
    """A task that waits for a retry."""
    task, claims = lab.running(lab.chain())
    lab.one.advance(retry(claims["s0"], delay_ms=delay_ms))
    return task, lab.chain()


@pytest.fixture
def alone(lab: Lab) -> Lab:
    return lab


def test_a_task_that_runs_for_too_long_becomes_a_dead_letter_in_error(alone: Lab) -> None:
    task, _ = alone.running(declared(alone, Spec("a"), Spec("b", depends_on=("a",)), **TWO_MINUTES))
    assert search(alone, 1.9) == []

    (found,) = search(alone, 2)

    assert (found["task_uuid"], found["action_taken"]) == (task, "TransitionedToDlqAndError")
    assert (found["time_in_state_minutes"], found["threshold_minutes"]) == (2, 2)
    assert (alone.task(task).state, alone.states(task)) == ("error", {"a": "error", "b": "pending"})
    (entry,) = entries(alone, task)
    assert (entry.original_state, entry.dlq_reason) == ("steps_in_process", "staleness_timeout")
    assert entry.resolution_status == "pending"
    snapshot = entry.task_snapshot
    assert snapshot["threshold_minutes"] == 2
    assert snapshot["signal"] == "time_in_state"
    assert {"task_uuid", "namespace", "task_name", "current_state", "time_in_state_minutes", "priority"} <= {*snapshot}
    assert snapshot["workflow_steps"][0]["name"] == "a"


def test_a_task_that_waits_for_dependencies_for_too_long_becomes_a_dead_letter(alone: Lab) -> None:
    task, claims = alone.running(declared(alone, Spec("a"), Spec("b"), **TWO_MINUTES))
    alone.one.finish(claims["a"])
    assert alone.task(task).state == "waiting_for_dependencies"

    (found,) = search(alone, 3)

    assert found["current_state"] == "waiting_for_dependencies"
    assert alone.states(task) == {"a": "complete", "b": "error"}


def test_an_operator_resets_what_went_stale_and_the_task_goes_on(alone: Lab) -> None:
    task, claims = alone.running(declared(alone, Spec("a"), **TWO_MINUTES))
    search(alone, 2)
    late = alone.one.advance(ok(claims["a"]))
    assert [*late["verdicts"].values()] == ["stale"]

    alone.one.advance(operator("reset", alone.steps(task)["a"]))
    alone.one.run_all()

    assert alone.task(task).state == "complete"
    assert [entry.resolution_status for entry in entries(alone, task)] == ["pending"]


def test_searching_twice_makes_one_entry_and_one_transition(alone: Lab) -> None:
    task, _ = alone.running(declared(alone, Spec("a"), **TWO_MINUTES))

    assert len(search(alone, 2)) == 1
    paths = alone.task_paths(task)
    assert search(alone, 3) == []

    assert len(entries(alone, task)) == 1
    assert alone.task_paths(task) == paths


def test_a_dry_run_says_what_it_would_do_and_does_nothing(alone: Lab) -> None:
    task, _ = alone.running(declared(alone, Spec("a"), **TWO_MINUTES))

    (found,) = search(alone, 2, dry_run=True)

    assert found["action_taken"] == "TransitionedToDlqAndError"
    assert (alone.task(task).state, entries(alone, task)) == ("steps_in_process", [])


@pytest.mark.parametrize(
    ("minutes", "expected"), [(1.58, "healthy"), (1.6, "warning"), (1.998, "warning"), (2, "stale")]
)
def test_health_is_a_warning_from_four_fifths_of_the_limit_and_stale_from_all_of_it(
    alone: Lab, minutes: float, expected: str
) -> None:
    task, _ = alone.running(declared(alone, Spec("a"), **TWO_MINUTES))

    assert health(alone, minutes, task) == expected


@pytest.mark.parametrize("switched", ["to_error", "to_dlq"])
def test_recording_and_ending_are_switched_off_apart(alone: Lab, switched: str) -> None:
    task, _ = alone.running(declared(alone, Spec("a"), **TWO_MINUTES))

    (found,) = search(alone, 2, **{switched: False})

    ends, enters = switched != "to_error", switched != "to_dlq"
    assert (found["transition_success"], found["moved_to_dlq"]) == (ends, enters)
    assert (alone.task(task).state == "error", len(entries(alone, task))) == (ends, int(enters))


@pytest.mark.parametrize(
    ("key", "state", "recorded"), [("auto_fail_on_timeout", "steps_in_process", 1), ("auto_dlq_on_timeout", "error", 0)]
)
def test_a_template_switches_recording_and_ending_off_for_itself(
    alone: Lab, key: str, state: str, recorded: int
) -> None:
    task, _ = alone.running(declared(alone, Spec("a"), **TWO_MINUTES, **{key: False}))

    search(alone, 2)

    assert (alone.task(task).state, len(entries(alone, task))) == (state, recorded)


def test_what_runs_within_its_time_on_a_living_worker_is_not_stale_by_the_settings_of_the_fleet(alone: Lab) -> None:
    alone.one.start_worker(lease_ms=10_000_000)
    task, _ = alone.running(alone.chain())
    alone.observer.execute("update tasker.workflow_steps set deadline_at = pg_catalog.now() + interval '1 hour'")

    assert search(alone, 45) == []
    assert [each["task_uuid"] for each in search(alone, 61)] == [task]


def test_what_waits_in_the_queue_of_living_workers_is_not_stale_by_the_settings_of_the_fleet(alone: Lab) -> None:
    alone.one.start_worker(lease_ms=10_000_000)
    alone.submit_one(alone.chain())

    assert search(alone, 45) == []


def test_a_task_whose_namespace_has_no_worker_is_recorded_and_left_to_go_on(alone: Lab) -> None:
    task = alone.submit_one(alone.chain())

    (found,) = search(alone, 31)

    assert (found["reason"], found["action_taken"]) == ("worker_unavailable", "MovedToDlqOnly")
    assert search(alone, 32) == []
    alone.one.run_all()
    assert alone.task(task).state == "complete"


def test_a_retry_is_stale_so_long_after_it_was_due_and_not_before(alone: Lab) -> None:
    task, _ = tried(alone, delay_ms=60 * 60_000)

    assert search(alone, 89) == []
    assert [each["task_uuid"] for each in search(alone, 91)] == [task]
    assert alone.step_paths(task, "s0")[-1] == "waiting_for_retry>pending>error"


def test_a_paused_task_has_no_clock(alone: Lab) -> None:
    task = alone.submit_one(declared(alone, Spec("a"), **TWO_MINUTES))
    alone.one.core("pause", {"namespace": alone.namespace, "actor": "me", "reason": ""})
    assert alone.one.claim() == []

    assert search(alone, 60 * 48) == []
    assert health(alone, 60 * 48, task) == "healthy"


def test_every_task_has_a_longest_life_active_or_not(alone: Lab) -> None:
    task, claims = alone.running(declared(alone, Spec("a"), Spec("b", depends_on=("a",)), max_duration_minutes=90))
    alone.one.set_time(89 * MINUTE)
    alone.one.finish(claims["a"], slots=5)
    assert search(alone, 89.5) == []

    (found,) = search(alone, 90)

    assert (found["signal"], alone.task(task).state) == ("task_age", "error")


def test_a_step_that_takes_long_or_stops_its_checkpoints_is_recorded_and_runs_on(alone: Lab) -> None:
    plan = alone.plan(Spec("a"), Spec("b"))
    slow = replace(plan.steps[0], lifecycle={"max_steps_in_process_minutes": 3})
    alone.one.start_worker(lease_ms=10_000_000)
    task, claims = alone.running(replace(plan, steps=(slow, plan.steps[1])))
    alone.one.core("checkpoint", {"step": claims["b"]["step"], "token": claims["b"]["token"], "checkpoint": {"at": 1}})

    (found,) = search(alone, 4)
    assert (found["signal"], found["step"], found["action_taken"]) == ("step_duration", "a", "MovedToDlqOnly")
    assert alone.states(task) == {"a": "in_progress", "b": "in_progress"}


def test_what_is_younger_than_every_limit_is_not_looked_at(alone: Lab) -> None:
    def looked(minutes: float) -> bool:
        at(alone, minutes)
        return bool(alone.two.value("select tasker.stale_candidates()"))

    assert not looked(0), "there is no task"
    _, claims = alone.running(alone.plan(Spec("a")))
    assert [looked(14.9), looked(15)] == [False, True], "the shortest limit of the fleet is that of checkpoints"
    alone.one.finish(claims["a"])
    assert not looked(15), "it has ended"

    alone.submit_one(replace(alone.plan(Spec("a"), name="timed"), lifecycle=TWO_MINUTES))
    assert looked(0), "its template has limits of its own"


def test_a_task_is_looked_at_whose_clock_was_set_back_after_it_was_made(alone: Lab) -> None:
    task, _ = alone.running(alone.plan(Spec("a")))
    alone.observer.execute("update tasker.tasks set updated_at = created_at - interval '1 hour'")

    (found,) = search(alone, 0)

    assert found["task_uuid"] == task


def test_a_task_that_somebody_changes_is_passed_over(alone: Lab) -> None:
    task, claims = alone.running(declared(alone, Spec("a"), **TWO_MINUTES))

    with alone.transaction(alone.one):
        alone.one.finish(claims["a"])
        assert search(alone, 2) == []

    assert (alone.task(task).state, entries(alone, task)) == ("complete", [])


def test_many_are_found_slice_by_slice(alone: Lab) -> None:
    tasks = sorted(alone.submit(declared(alone, Spec("a"), **TWO_MINUTES), *({} for _ in range(5))))
    at(alone, 3)
    found: list[str] = []
    last = None
    for _ in range(3):
        answer = alone.two.call("stale", {"limit": 2, "after": last})
        found += [each["task_uuid"] for each in answer["stale"]]
        last = answer.get("last")

    assert (found, last) == (tasks, None)


def test_one_process_searches_in_each_interval(alone: Lab) -> None:
    def searched(seconds: float) -> bool:
        alone.two.set_time(seconds)
        return bool(alone.two.call("stale", {"every_ms": 300_000})["searched"])

    assert [searched(0), searched(299), searched(301)] == [True, False, True]


def test_whoever_listens_is_told_of_stale_tasks(alone: Lab) -> None:
    task, _ = alone.running(declared(alone, Spec("a"), **TWO_MINUTES))
    alone.observer.execute("listen task_staleness_detected")

    search(alone, 2, channel="task_staleness_detected")

    (notice,) = alone.observer.connection.notifies(timeout=60, stop_after=1)
    assert task in notice.payload


def test_a_task_that_fails_becomes_a_dead_letter_in_the_same_transaction(alone: Lab) -> None:
    task, claims = alone.running(alone.chain())

    with alone.transaction(alone.one):
        alone.one.advance(fail(claims["s0"], e={"message": "no", "error_type": "E", "fingerprint": "f1"}))
        assert entries(alone, task) == []

    (entry,) = entries(alone, task)
    assert (entry.dlq_reason, entry.original_state, entry.fingerprints) == (
        "max_retries_exceeded",
        "steps_in_process",
        ["f1"],
    )
    assert entry.task_snapshot["current_state"] == "error"
    assert entry.task_snapshot["workflow_steps"][0]["last_error"]["message"] == "no"


def test_a_task_that_waits_for_a_person_is_a_dead_letter_too(alone: Lab) -> None:
    task, claims = alone.running(alone.chain())
    alone.one.advance(fail(claims["s0"]), on_blocked="wait")

    assert [entry.dlq_reason for entry in entries(alone, task)] == ["max_retries_exceeded"]


def test_without_dead_letters_nothing_is_recorded_and_everything_else_is_the_same(alone: Lab) -> None:
    paths = []
    for wanted in (True, False):
        task, claims = alone.running(alone.plan(Spec("s", retry=RetryPolicy(max_attempts=2)), name=f"flow{wanted}"))
        alone.one.advance(retry(claims["s"], delay_ms=0), dead_letters=wanted)
        alone.one.call("due", alone.one.args())
        alone.one.advance(fail(alone.one.claim()[0]), dead_letters=wanted)
        assert len(entries(alone, task)) == int(wanted)
        paths.append((alone.task_paths(task), alone.step_paths(task, "s"), alone.steps(task)["s"].attempts))

    assert paths[0] == paths[1]


def test_a_task_that_fails_again_renews_its_pending_entry(alone: Lab) -> None:
    task, claims = alone.running(alone.chain())
    alone.one.advance(fail(claims["s0"], e={"message": "no", "fingerprint": "f1"}))
    alone.one.advance(operator("reset", alone.steps(task)["s0"]))
    alone.one.advance(fail(alone.one.claim()[0], e={"message": "never", "fingerprint": "f2"}))

    (entry,) = entries(alone, task)
    assert (entry.fingerprints, entry.task_snapshot["workflow_steps"][0]["last_error"]["message"]) == (["f2"], "never")


def test_a_second_pending_entry_is_refused_and_one_after_a_closed_one_is_not(alone: Lab) -> None:
    task, claims = alone.running(alone.chain())
    alone.one.advance(fail(claims["s0"]))
    insert = "insert into tasker.tasks_dlq (task_uuid, original_state, dlq_reason) values (%s, 'error', 'manual_dlq')"
    with pytest.raises(Exception, match="idx_dlq_unique_pending_task"):
        alone.observer.execute(insert, task)
    alone.observer.execute("update tasker.tasks_dlq set resolution_status = 'permanently_failed'")

    alone.observer.execute(insert, task)

    assert len(entries(alone, task)) == 2


def test_a_step_whose_checkpoints_stop_is_recorded_unless_it_reports_progress(alone: Lab) -> None:
    plan = alone.plan(Spec("a"), Spec("b"))
    watched = replace(plan.steps[0], lifecycle={"max_steps_in_process_minutes": 10_000})
    alone.one.start_worker(lease_ms=10_000_000)
    _, claims = alone.running(replace(plan, steps=(watched, plan.steps[1])))
    for name in ("a", "b"):
        which = {"step": claims[name]["step"], "token": claims[name]["token"]}
        alone.one.core("checkpoint", {**which, "cursor": 1, "items_processed": 1, "timeout_ms": 10_000_000})
    told = {"task": claims["a"]["task"], "step": claims["a"]["step"], "token": claims["a"]["token"], "fraction": 0.5}
    alone.one.core("report", {"lines": [], "progress": [told]})
    alone.observer.execute("update tasker.step_progress set reported_at = reported_at + interval '10 minutes'")

    (found,) = search(alone, 16)

    assert (found["signal"], found["step"]) == ("checkpoint_stalled", "b")


async def test_the_lines_of_a_stale_task_say_whose_it_is(alone: Lab, caplog: pytest.LogCaptureFixture) -> None:
    task, _ = alone.running(declared(alone, Spec("a"), **TWO_MINUTES))
    at(alone, 3)
    engine = Engine(Direct(alone.two), MessagingService(load_backend("pgmq", {})))

    with caplog.at_level("INFO", "tasker.orchestration"):
        await StalenessSearch(engine, DeadLetterSettings(), BatchProcessing()).search(alone.two.worker)

    correlation, namespace = f"correlation_id={task}", f"namespace={alone.namespace}"
    ended, stale = caplog.messages
    assert ended == f"Task finalized: task_uuid={task} {correlation} {namespace} state=error"
    assert stale.startswith(f"stale_task {correlation} task_uuid={task} {namespace} state=steps_in_process template=")


async def test_a_search_counts_what_it_has_found_and_how_long_it_took(alone: Lab) -> None:
    alone.running(declared(alone, Spec("a"), **TWO_MINUTES))
    at(alone, 3)
    engine = Engine(Direct(alone.two), MessagingService(load_backend("pgmq", {})))
    careful = Staleness(actions=Actions(auto_transition_to_error=False))
    tables = DeadLetterSettings(), DeadLetterSettings(staleness_detection=careful)
    one, other = (StalenessSearch(engine, table, BatchProcessing()) for table in tables)
    for search in (one, other, one):
        await search.search(alone.two.worker)

    assert one.counts == {
        "detection_runs": 1,
        "tasks_detected": 1,
        "entries_created": 1,
        "tasks_transitioned_to_error": 1,
    }
    assert (sum(one.durations.counted()[0]), one.durations.counted()[1] > 0) == (1, True)
    assert not +other.counts, "it is not its turn"
    assert sum(other.durations.counted()[0]) == 0

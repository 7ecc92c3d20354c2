"""What has happened lately, as the web page draws it."""

from __future__ import annotations

from dataclasses import replace

from tasker.services.fleet.overview import activity
from tasker.views.overview import Activity
from tests.integration.engine.fleet.conftest import Watched, assert_reads_no_finished_tasks
from tests.support.engine_fixture import Lab, change, fail, retry


def lately(lab: Lab, **args: float) -> Activity:
    return activity(lab.observer.core("activity", args))


def test_tasks_are_counted_in_the_slice_in_which_they_were_submitted_and_ended(watched: Watched) -> None:
    lab = watched.lab
    lab.submit(lab.chain(1), {}, {})
    lab.one.run_all()
    _, claims = lab.running(lab.chain(1, name="broken"))
    lab.observer.set_time(600)
    lab.one.set_time(600)
    lab.one.advance(fail(claims["s0"]))

    (found,) = lately(lab, seconds=1200, slices=4).namespaces

    assert found.namespace == lab.namespace
    assert sum(found.submitted) == 3
    assert found.submitted[1] + found.submitted[2] == 3  # ten minutes ago is the middle
    assert (found.ended[-1], found.failed[-1], sum(found.ended)) == (1, 1, 3)
    assert (found.running, found.waiting, found.dead_letters) == (0, 0, 1)
    lab.observer.set_time(7200)
    assert sum(lately(lab).namespaces[0].submitted) == 0


def test_open_tasks_run_while_a_step_is_queued_or_at_a_worker(watched: Watched) -> None:
    lab = watched.lab
    _, claims = lab.running(lab.chain(1, name="later"))
    lab.one.advance(retry(claims["s0"], delay_ms=60_000))
    lab.submit(lab.chain(1), {})

    found = lately(lab)

    assert (found.namespaces[0].running, found.namespaces[0].waiting) == (1, 1)
    assert found.retries_due == 1


def test_the_wait_in_the_queue_is_from_its_place_there_to_a_worker(watched: Watched) -> None:
    lab = watched.lab
    assert lately(lab).wait_p50_ms is None
    lab.submit(lab.chain(1), {})
    lab.one.set_time(5)
    lab.one.run_all()
    lab.observer.set_time(6)

    found = lately(lab)

    assert 4_000 <= (found.wait_p50_ms or 0) <= 6_000
    assert found.steps_ended == 1
    assert 0 < found.steps_per_second < 1
    assert (found.waits_p50_ms[-1], found.waits_p95_ms[-1]) == (found.wait_p50_ms, found.wait_p95_ms)
    assert set(found.waits_p50_ms[:-1]) == set(found.waits_p95_ms[:-1]) == {None}


def test_of_many_tasks_some_all_over_the_time_are_asked_how_long_they_waited(watched: Watched) -> None:
    lab = watched.lab
    for moment in (0, 600, 1200):
        lab.one.set_time(moment)
        lab.submit(lab.chain(1), *({} for _ in range(40)))
        lab.one.run_all()
    lab.observer.set_time(1201)

    found = lately(lab, seconds=1800, slices=3, steps=24)

    assert len(found.waits_p50_ms) == 3
    assert None not in (*found.waits_p50_ms, *found.waits_p95_ms)


def test_a_handler_that_no_worker_has_is_told_until_its_step_is_taken(watched: Watched) -> None:
    lab = watched.lab
    watched.at_work(lab.one, "w1")
    _, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"], n={"unserved": "shop.missing"}))

    (found,) = lately(lab).unserved
    assert (found.callable, found.namespace, found.steps) == ("shop.missing", lab.namespace, 1)

    lab.one.run_all()
    assert lately(lab).unserved == []


def test_of_no_tasks_only_what_waits_is_told(watched: Watched) -> None:
    lab = watched.lab
    lab.submit(lab.chain(1), {})
    lab.one.run_all()

    found = lately(lab, tasks=0)

    assert (sum(found.namespaces[0].submitted), found.steps_ended, found.wait_p50_ms) == (0, 0, None)


def test_what_it_reads_does_not_grow_with_finished_tasks(watched: Watched) -> None:
    assert_reads_no_finished_tasks(watched.lab, "activity_v1", "tasker.step_moves")


def test_namespaces_in_which_something_happens_come_first_and_in_pages(watched: Watched) -> None:
    lab = watched.lab
    for name in ("attic", "zoo"):
        lab.one.execute("select tasker.namespace_id(%s)", name)
    lab.one.submit(replace(lab.chain(1), namespace="zoo"), {})

    def page(**args: int) -> list[str]:
        return [each.namespace for each in lately(lab, slices=2, **args).namespaces]

    assert page() == ["zoo", "attic", lab.namespace]
    assert page(namespaces=2) == ["zoo", "attic"]
    second = lately(lab, slices=2, namespaces=2, offset=2)
    assert [each.namespace for each in second.namespaces] == [lab.namespace]
    assert (sum(second.submitted), sum(second.ended), sum(second.failed)) == (1, 0, 0)
    assert page(namespaces=0) == []

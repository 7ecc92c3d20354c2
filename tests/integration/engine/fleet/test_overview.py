"""How the fleet does, as `tasker top` shows it."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.engine.fleet.conftest import Watched, assert_reads_no_finished_tasks
from tests.support.engine_fixture import change, fail, retry


def test_queues_say_what_waits_is_held_and_is_paused_and_who_serves_them(watched: Watched) -> None:
    lab = watched.lab
    watched.at_work(lab.one, "w1")
    lab.window = 2
    lab.submit(lab.chain(1), *({} for _ in range(5)))
    (queue,) = watched.overview().queues
    assert (queue.namespace, queue.enqueued, queue.held, queue.paused) == (lab.namespace, 2, 3, 0)
    assert queue.processes == 1

    lab.one.core("pause", {"namespace": lab.namespace, "actor": "ada", "reason": ""})
    found = watched.overview()
    assert (found.queues[0].held, found.queues[0].paused, found.pauses, found.open) == (0, 3, 1, 5)


def test_what_leaves_a_queue_between_two_looks_is_its_rate(watched: Watched) -> None:
    lab = watched.lab
    lab.submit(lab.chain(1), *({} for _ in range(6)))
    before = watched.overview()
    lab.one.claim()
    lab.observer.set_time(3)

    rates = watched.overview().taken_per_second(before)

    assert 1.0 < rates[lab.namespace] <= 2.0
    assert watched.overview().taken_per_second(None) == {}


def test_processes_are_live_draining_or_lost_with_what_they_hold(watched: Watched) -> None:
    lab = watched.lab
    watched.at_work(lab.one, "w1")
    watched.at_work(lab.two, "w2").core("worker", {"action": "drain", "worker": lab.two.worker})
    beat = {"action": "beat", "worker": lab.one.worker, "lease_ms": 30_000, "held": [[lab.one.worker, 1]]}
    lab.one.core("worker", beat)

    assert [(each.name, each.state, each.in_hand, each.slots) for each in watched.overview().processes] == [
        ("w1", "live", 1, 10),
        ("w2", "draining", 0, 10),
    ]
    lab.observer.set_time(31)
    assert {each.state for each in watched.overview().processes} == {"lost"}


def test_a_breaker_is_known_by_the_steps_that_it_puts_off(watched: Watched) -> None:
    lab = watched.lab
    _, first = lab.running(lab.chain(1))
    _, second = lab.running(lab.chain(1))
    _, third = lab.running(lab.chain(1))
    note = {"reason": "the circuit breaker of bank is open"}
    for claims in (first, second):
        lab.one.advance(change("defer", claims["s0"], d=30_000, n=note))
    lab.one.advance(retry(third["s0"], delay_ms=30_000))

    found = watched.overview()
    assert [(each.breaker, each.steps) for each in found.breakers] == [("bank", 2)]
    assert found.failed_attempts == 1


def test_templates_of_the_window_are_listed_with_their_pace_the_slowest_first(watched: Watched) -> None:
    lab = watched.lab
    for name in ("quick", "slow", "broken"):
        _, claims = lab.running(lab.chain(1, name=name))
        if name == "slow":
            lab.one.set_time(5)
        lab.one.advance(fail(claims["s0"])) if name == "broken" else lab.one.finish(claims["s0"])
    lab.submit(lab.chain(1, name="quick"))

    found = {each.template: each for each in watched.overview().templates}
    assert next(iter(found)) in ("slow:1.0.0", "broken:1.0.0")
    assert (found["quick:1.0.0"].tasks, found["quick:1.0.0"].running) == (2, 1)
    assert (found["slow:1.0.0"].mean_ms or 0) >= 4_000
    assert found["broken:1.0.0"].failed == 1
    assert watched.overview().dead_letters == 1

    lab.observer.set_time(7200)
    assert watched.overview().templates == []


def test_steps_that_say_how_far_they_are_are_listed_until_they_end_the_longest_first(watched: Watched) -> None:
    lab = watched.lab
    tasks = []
    for done, message in ((1, "reading a.csv"), (3, None)):
        task, claims = lab.running(lab.chain(1, name="importing"))
        tasks.append((task, claims["s0"]))
        said = {name: claims["s0"][name] for name in ("task", "step", "token", "attempt")}
        progress = {**said, "fraction": done / 4, "done": done, "total": 4, "message": message}
        lab.one.core("report", {"lines": [], "progress": [progress]})

    assert [
        (each.task, each.template, each.step, each.percent, each.done, each.total, each.message, each.eta_seconds)
        for each in watched.overview().running
    ] == [
        (tasks[0][0], "importing:1.0.0", "s0", 25, 1, 4, "reading a.csv", None),
        (tasks[1][0], "importing:1.0.0", "s0", 75, 3, 4, None, None),
    ]
    lab.one.finish(tasks[0][1])
    assert [each.task for each in watched.overview().running] == [tasks[1][0]]
    lab.observer.set_time(301)
    assert watched.overview().running == [], "nothing was heard of it for five minutes"


def test_what_it_reads_does_not_grow_with_finished_tasks(watched: Watched) -> None:
    assert_reads_no_finished_tasks(watched.lab, "overview_v1", "tasker.enqueue_counters")


def test_queues_come_in_pages_and_those_that_nobody_serves_are_counted(watched: Watched) -> None:
    lab = watched.lab
    lab.submit(lab.chain(1), {})
    for number in range(7):
        name = f"space_{number}"
        lab.one.submit(replace(lab.chain(1), namespace=name), *({} for _ in range(2 + number)))
    watched.at_work(lab.one, "w1", namespaces=[lab.namespace, "space_6", "space_6"])

    found = watched.overview(queues=3, offset=1)

    assert [(each.namespace, each.enqueued, each.processes) for each in found.queues] == [
        ("space_5", 7, 0),
        ("space_4", 6, 0),
        ("space_3", 5, 0),
    ]
    assert (found.namespaces, found.unworked) == (8, 6)
    assert [each.namespace for each in found.unworked_queues] == [f"space_{number}" for number in (5, 4, 3, 2, 1)]
    (named,) = watched.overview(namespaces=["space_6"]).queues
    assert (named.enqueued, named.processes) == (8, 1)
    assert len(watched.overview().queues) == 8
    assert watched.overview(queues=0).queues == []

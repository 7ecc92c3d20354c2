"""What needs a person comes first, and each thing says what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from tasker.server.web.presenters.overview import charts_of, figures, namespaces, needs
from tasker.services.fleet.overview import Activity, NamespaceActivity, OpenBreaker, Overview, Process, Queue, Unserved

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
QUEUE = Queue("shop", enqueued=0, held=0, paused=0, taken=0, processes=1)
PROCESS = Process("w", "w", "worker", "here", 1, "live", ["shop"], 10, 3, False, 100)
QUIET = Overview(NOW, [QUEUE], [PROCESS], [], [], [], 0, 0, 0, 0, 0)
SHOP = NamespaceActivity("shop", [0, 2], [0, 1], [0, 0], running=1, waiting=0, dead_letters=0)
LATELY = Activity(NOW, 3600, 2, [SHOP], 7200, 3.0, 12.0, 0, [], submitted=[0, 2], ended=[0, 1], failed=[0, 0])


def test_a_fleet_that_does_well_needs_nobody() -> None:
    assert needs(QUIET, LATELY) == []


def test_what_stands_still_comes_before_what_mends_by_itself() -> None:
    found = replace(
        QUIET,
        unworked=3,
        unworked_queues=[replace(QUEUE, enqueued=2, held=1, processes=0)],
        processes=[replace(PROCESS, state="lost")],
        breakers=[OpenBreaker("bank", 4, NOW)],
        pauses=2,
        dead_letters=1,
    )
    lately = replace(LATELY, unserved=[Unserved("shop.gone", "shop", 1, NOW)])

    told = needs(found, lately)

    assert [need.text for need in told] == [
        "No worker has shop.gone: 1 step waiting in shop",
        "shop: 3 steps in the queue, and no live worker",
        "2 more namespaces with steps in the queue, and no live worker",
        "1 process without a heartbeat",
        "1 dead letter to resolve",
        "The breaker of bank is open: 4 steps deferred",
        "2 pauses active",
    ]
    assert [need.urgent for need in told] == [True, True, True, False, True, False, False]
    assert all(need.hint for need in told)


def test_handlers_that_nobody_has_are_summed_up_beyond_five() -> None:
    unserved = [Unserved(f"shop.gone{number}", "shop", 1, NOW) for number in range(7)]

    told = [need.text for need in needs(QUIET, replace(LATELY, unserved=unserved))]

    assert told[4:] == ["No worker has shop.gone4: 1 step waiting in shop", "2 more handlers that no worker has"]


def test_namespaces_keep_the_order_of_their_page() -> None:
    quiet = replace(SHOP, namespace="attic", submitted=[0, 0], running=0)
    found = replace(QUIET, queues=[replace(QUEUE, namespace="attic"), QUEUE])
    rows = namespaces(found, replace(LATELY, namespaces=[SHOP, quiet]))
    assert [(row.activity.namespace, row.queue.namespace) for row in rows] == [("shop", "shop"), ("attic", "attic")]


def test_figures_say_what_they_count() -> None:
    shown = {each.name: (each.value, each.note) for each in figures(QUIET, LATELY)}
    assert shown["steps a second"] == ("2.00", "7,200 in the last hour")
    assert shown["workers"] == ("1", "3 of 10 slots in use")
    assert shown["wait in the queue"] == ("3 ms", "p95 12 ms")
    assert figures(QUIET, replace(LATELY, wait_p50_ms=None, wait_p95_ms=None))[2].value == "none"


def test_charts_have_a_number_a_minute_for_each_slice_of_all_namespaces() -> None:
    lately = replace(LATELY, submitted=[0, 4], ended=[0, 2], waits_p50_ms=[None, 3.0], waits_p95_ms=[None, 12.0])
    charts = charts_of(replace(lately, wait_p50_ms=3.0, wait_p95_ms=12.0))

    assert charts.data["moments"] == [round(NOW.timestamp()) - 3600, round(NOW.timestamp()) - 1800]
    assert charts.data["tasks"] == [[0, 0.133], [0, 0.067], [0, 0]]
    assert charts.data["waits"] == [[None, 3.0], [None, 12.0]]
    tasks, waits = charts.charts
    assert tasks.words == "4 submitted, 2 ended, 0 of them failed"
    assert waits.words == "median 3 ms, p95 12 ms"
    assert (waits.highest, waits.lines[0].values) == (12.0, [0.0, 3.0])


def test_a_chart_without_anything_to_show_says_so() -> None:
    quiet = replace(LATELY, wait_p50_ms=None, wait_p95_ms=None, submitted=[], ended=[], failed=[])
    tasks, waits = charts_of(quiet).charts
    assert (tasks.words, waits.words) == ("0 submitted, 0 ended, 0 of them failed", "no step has waited")

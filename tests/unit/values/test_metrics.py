"""Metrics that plugins keep: what Prometheus reads of them, and their bounds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tasker.metrics import MOST_SERIES, Counter, Gauge, Histogram, summed
from tasker.services.fleet.metric_catalogue import families


def test_each_kind_is_told_as_prometheus_reads_it() -> None:
    sent, depth = Counter("bell_sent_total", "Sent.", ["kind"]), Gauge("bell_depth", "How deep.")
    took = Histogram("bell_seconds", "How long.", [0.1, 1], ["kind"])
    sent.add(kind='a "b"\n')
    sent.add(2.5, kind="c")
    for seconds in (0.1, 0.5, 7):
        took.observe(seconds, kind="c")
    assert families([sent, depth, took]) == (
        "# HELP bell_sent_total Sent.\n# TYPE bell_sent_total counter\n"
        'bell_sent_total{kind="a \\"b\\"\\n"} 1\nbell_sent_total{kind="c"} 2.5\n'
        "# HELP bell_depth How deep.\n# TYPE bell_depth gauge\nbell_depth 0\n"
        "# HELP bell_seconds How long.\n# TYPE bell_seconds histogram\n"
        'bell_seconds_bucket{kind="c",le="0.1"} 1\nbell_seconds_bucket{kind="c",le="1"} 2\n'
        'bell_seconds_bucket{kind="c",le="+Inf"} 3\n'
        'bell_seconds_sum{kind="c"} 7.5999999999999996\nbell_seconds_count{kind="c"} 3\n'
    )


def test_a_label_with_endless_values_is_bounded() -> None:
    count = Counter("bell_total", "Rings.", ["task"])
    for number in range(MOST_SERIES + 50):
        count.add(task=str(number))
    values = {labels["task"]: value for _, labels, value in count.samples()}
    assert (len(values), values["other"], values["7"]) == (MOST_SERIES + 1, 50, 1)
    count.add(task="7")
    assert {labels["task"]: value for _, labels, value in count.samples()}["7"] == 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Counter("bell-total", "No."),
        lambda: Gauge("bell", "No.", ["Task"]),
        lambda: Histogram("bell", "No.", []),
        lambda: Histogram("bell", "No.", [2, 1]),
        lambda: Counter("bell", "No.").add(-1),
        lambda: Counter("bell", "No.", ["kind"]).add(),
        lambda: Gauge("bell", "No.").set(1, kind="a"),
        lambda: Histogram("bell", "No.", [1]).set([1], 1),
    ],
)
def test_what_prometheus_would_not_take_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"bell|Task"):
        wrong()


def test_a_histogram_tells_what_was_counted_elsewhere() -> None:
    waits = Histogram("bell_hours", "How long.", [1, 4])
    waits.set([2, 0, 1], 30.5)
    waits.set([2, 1, 1], 33)
    told = {(ending, labels.get("le")): value for ending, labels, value in waits.samples()}
    assert told == {
        ("_bucket", "1"): 2,
        ("_bucket", "4"): 3,
        ("_bucket", "+Inf"): 4,
        ("_sum", None): 33,
        ("_count", None): 4,
    }


def test_histograms_are_summed_with_what_took_no_time() -> None:
    one, two = (Histogram("bell_ms", "How long.", [1, 4]) for _ in range(2))
    one.observe(3)
    two.observe(0.5)
    two.observe(9, 2)
    assert summed(one, two, zeros=10).counted() == ([11, 1, 2], 21.5)
    assert one.counted() == ([0, 1, 0], 3)
    assert Histogram("bell_ms", "How long.", [1]).counted() == ([0, 0], 0)

"""The text of numbers is one that Prometheus can read, whatever stands in the labels."""

from __future__ import annotations

import pytest

from tasker.services.fleet.metric_catalogue import Catalogue, Described, Sample, exposition

CATALOGUE: Catalogue = {"a_total": Described("counter", "Counts."), "b": Described("gauge", "Is.")}


def test_samples_of_a_name_stand_together_under_what_it_means() -> None:
    samples = [Sample("b", 0.5, {"x": 'a "b"\\\n'}), Sample("a_total", 2**40), Sample("b", 1, {"x": "c", "y": "d"})]

    assert exposition(CATALOGUE, samples) == (
        "# HELP a_total Counts.\n# TYPE a_total counter\na_total 1099511627776\n"
        '# HELP b Is.\n# TYPE b gauge\nb{x="a \\"b\\"\\\\\\n"} 0.5\nb{x="c",y="d"} 1\n'
    )


def test_a_name_that_nobody_described_is_an_error() -> None:
    with pytest.raises(KeyError):
        exposition(CATALOGUE, [Sample("c", 1)])

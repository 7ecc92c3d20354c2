"""Steps that need what no live worker has: a tag, or more slots."""

from __future__ import annotations

import pytest

from tests.integration.engine.explain.conftest import Told, at_work
from tests.support.engine_fixture import change
from tests.support.random_plans import Spec


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        (Spec("s0", requires=("gpu",)), "no live worker of the namespace {} has the tag gpu: refused by w1"),
        (Spec("s0", requires=("fast", "gpu")), "no live worker of the namespace {} has the tag gpu: refused by w1"),
        (Spec("s0", slots=11), "needs 11 slots, and no live worker of the namespace {} has more than 10"),
        (Spec("s0", requires=("fast",), slots=10), "no live worker serves noop: refused by w1"),
    ],
)
def test_a_step_that_needs_what_no_worker_has_says_what_it_is(told: Told, needs: Spec, sentence: str) -> None:
    lab = told.lab
    at_work(lab.one, "w1", tags=["fast"])
    task, claims = lab.running(lab.plan(needs))
    lab.one.advance(change("release", claims["s0"], n={"unserved": "noop"}))

    assert told.sentence(task, "s0").partition(", last")[0] == sentence.format(lab.namespace)

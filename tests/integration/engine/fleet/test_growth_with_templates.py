"""What is read of a fleet costs little or nothing for a template that is registered and has nothing to do."""

from __future__ import annotations

import pytest

from tests.support.engine_fixture import Lab
from tests.support.fleets.work import work_of
from tests.support.random_plans import Spec

FEW, MANY = 20, 320


@pytest.fixture
def lab(database_url: str) -> Lab:
    return Lab(database_url)


@pytest.mark.parametrize(
    ("function", "ended", "pages"),
    [("overview", False, 0), ("overview", True, 0), ("scaling", False, 0.1), ("scaling", True, 3.5)],
    ids=["overview, never used", "overview, done long ago", "scaling, never used", "scaling, done long ago"],
)
def test_a_read_of_the_fleet_costs_little_for_an_idle_template(
    lab: Lab, function: str, ended: bool, pages: float
) -> None:
    lab.one.start_worker(lease_ms=3_600_000)
    registered, works = 0, []
    for count in (FEW, MANY):
        while registered < count:
            plan = lab.plan(Spec("only"), name=f"idle{registered:04}")
            lab.one.submit(plan, *([{}] if ended else []))  # registers it in any case
            registered += 1
        lab.one.run_all()
        lab.one.execute("update tasker.tasks set completed_at = completed_at - interval '1 day'")
        lab.submit(lab.chain(2, name="busy"), *({} for _ in range(20)))
        lab.one.run_all()
        lab.one.execute("vacuum analyze")
        lab.one.execute("set enable_seqscan to off")
        works.append(work_of(lab.one, lambda: lab.one.core(function, {"templates": 5})))
    lab.close()

    few, many = works

    assert many.pages <= few.pages * 1.2 + 20 + pages * (MANY - FEW), (few.pages_of, many.pages_of)

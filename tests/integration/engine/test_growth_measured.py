"""What `make bench-growth` measures can be asked: each case, as small as it can be."""

from __future__ import annotations

import pytest

from tests.benchmarks.growth import crowds, expansion, templates, wide
from tests.benchmarks.growth.case import Case
from tests.support.engine_fixture import Lab

CASES = (*expansion.CASES, *wide.CASES, *templates.CASES, *crowds.CASES)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_case_of_growth_can_be_measured(database_url: str, case: Case) -> None:
    lab = Lab(database_url)
    try:
        case.prepare(lab, 8)()
    finally:
        lab.close()

"""Values of steps that start child tasks."""

from __future__ import annotations

import pytest

from tasker.services.child_values import tolerated


@pytest.mark.parametrize(
    ("share", "total", "number"), [(5.0, 40, 2), (0.57, 10_000, 57), (1.14, 5_000, 57), (5.0, 39, 1), (100.0, 7, 7)]
)
def test_a_share_is_the_exact_one_rounded_down(share: float, total: int, number: int) -> None:
    assert tolerated({"tolerated_percent": share, "tolerated": None}, total) == number

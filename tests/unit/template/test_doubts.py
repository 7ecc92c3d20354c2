"""Where a part of a template could not be read, nothing is claimed of what depends on it."""

from __future__ import annotations

import pytest

from tests.unit.template.support import codes, compiled, steps

DECISION = "- {name: pick, handler: h, type: decision, depends_on: [a]}\n"
UNREADABLE = "- {name: a, handler: h, depends_on: [nowhere]}\n"


@pytest.mark.parametrize(
    "below",
    [
        DECISION + "- {name: b, handler: h, depends_on: [pick]}\n- {name: c, handler: h, depends_on: [b]}",
        "- {name: b, handler: h, depends_on: [a]}\n"
        "- {name: c, handler: h, type: deferred_convergence, depends_on: [b]}",
        DECISION,
    ],
    ids=["a step that may not exist", "a convergence of nothing", "a decision without branches"],
)
def test_nothing_below_an_unreadable_step_is_judged(below: str) -> None:
    sound = compiled(steps("- {name: a, handler: h}\n" + below))
    unreadable = compiled(steps(UNREADABLE + below))

    assert {code for code in codes(sound) if code.startswith(("T05", "T07"))}, "it would be judged otherwise"
    assert codes(unreadable) == ["T040"]


def test_of_a_cycle_only_the_cycle_is_told() -> None:
    text = """
    - {name: a, handler: h, depends_on: [b]}
    - {name: b, handler: h, depends_on: [a]}
    - {name: pick, handler: h, type: decision, depends_on: [a]}
    - {name: end, handler: h, type: deferred_convergence, depends_on: [b]}
    """
    assert codes(compiled(steps(text))) == ["T041"]


@pytest.mark.parametrize("number", ["001", "999", "1000", "12345"])
def test_no_step_has_the_name_of_an_instance_of_a_batch_worker(number: str) -> None:
    text = f"""
    - {{name: cut, handler: h, type: batchable}}
    - {{name: work, handler: h, type: batch_worker, depends_on: [cut]}}
    - {{name: work_{number}, handler: h}}
    """
    assert codes(compiled(steps(text))) == ["T055"]

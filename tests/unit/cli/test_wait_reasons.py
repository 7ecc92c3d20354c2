"""Reasons why steps wait, in a live view: of several for one step the first one counts, as `tasker task explain` has
them in the order of urgency."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tasker.cli.live.feed import WaitChanges, WaitReasons
from tasker.views.explain_reasons import REASONS
from tasker.views.explanation import Explained
from tasker.views.progress import StepProgress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
URGENT, CALM = "nobody", "paused"


def reason(name: str, *, steps: tuple[str, ...] = (), of: tuple[str, ...] = ()) -> Explained:
    pause = {"namespace": "shop", "actor": "ada", "reason": "stock", "paused_at": NOON.isoformat()}
    values = {"namespace": "shop", "handlers": ["h"], "refused_by": [], "pause": pause}
    return Explained(name, steps, of, 1, REASONS[name].needs_somebody, NOON, values, "task", NOON, 1)


def step(name: str, template_step: str) -> StepProgress:
    return StepProgress(name, template_step, "enqueued", 0, 3, NOON)


def why(reasons: list[Explained], name: str, template_step: str) -> str:
    return WaitReasons(reasons).why(step(name, template_step), NOON + timedelta(minutes=1))


def test_first_of_two_reasons_of_a_step_is_shown() -> None:
    urgent, calm = (reason(name, steps=("work_1",), of=("work",)) for name in (URGENT, CALM))

    assert urgent.sentence() != calm.sentence()
    assert why([urgent, calm], "work_1", "work") == urgent.sentence()
    assert why([calm, urgent], "work_1", "work") == calm.sentence()


def test_first_of_two_reasons_of_a_template_step_is_shown_for_an_instance_that_is_not_named() -> None:
    urgent, calm = (reason(name, steps=("work_1",), of=("work",)) for name in (URGENT, CALM))

    assert why([urgent, calm], "work_2", "work") == urgent.sentence()
    assert why([calm, urgent], "work_2", "work") == calm.sentence()


def test_reason_of_a_named_step_is_shown_before_that_of_its_template_step() -> None:
    of_others, own = reason(URGENT, steps=("work_1",), of=("work",)), reason(CALM, steps=("work_2",), of=("work",))

    assert why([of_others, own], "work_2", "work") == own.sentence()


def test_change_of_a_second_reason_of_a_template_step_is_not_reported() -> None:
    urgent, calm = (reason(name, of=("work",)) for name in (URGENT, CALM))
    changes = WaitChanges()

    assert changes.among([urgent, calm]) == [urgent]
    assert changes.among([urgent]) == []
    assert changes.among([calm, urgent]) == [calm]

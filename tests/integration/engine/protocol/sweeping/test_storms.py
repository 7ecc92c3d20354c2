"""Failure storms: a step that fails too often is paused by `tasker`, until a person or its time ends that."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tasker.engine.plans import PlanStore
from tasker.orchestration.failure_storms import FailureBurstMonitor
from tasker.orchestration.sweep import Sweeper, SweepSettings
from tasker.settings.breakers import FailureStorm
from tests.integration.engine.protocol.conftest import Orchestra
from tests.support.engine_fixture import FAILURE, Lab


def fail_once(lab: Lab, name: str, times: int) -> None:
    """So many tasks of the template `name`, the only step of each fails for good."""
    lab.submit(lab.chain(1, name), *({} for _ in range(times)))
    for claim in lab.one.claim(times):
        lab.one.advance({"s": claim["step"], "t": claim["task"], "k": claim["token"], "kind": "fail", "e": FAILURE})


def watch(orchestra: Orchestra, **settings: Any) -> FailureBurstMonitor:
    return FailureBurstMonitor(orchestra.engine, FailureStorm(**{"failures": 3, **settings}))


def pauses(lab: Lab) -> list[tuple[Any, ...]]:
    found = lab.one.core("paused", {})["pauses"]
    return [(each["namespace"], each["template"], each["step"], each["actor"]) for each in found]


async def test_beyond_the_limit_the_namespace_is_paused_by_tasker_who_says_why(
    orchestra: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    lab, check = orchestra.lab, watch(orchestra)
    fail_once(lab, "order", 3)
    await check.check()
    assert pauses(lab) == []
    fail_once(lab, "order", 1)
    await check.check()
    await check.check()

    assert pauses(lab) == [(lab.namespace, None, None, "tasker")]
    (pause,) = lab.one.core("paused", {})["pauses"]
    assert pause["reason"] == (
        f"failure_storm: 4 failures of {lab.namespace}/order/s0 within 600 s, the last one: TestError: it broke"
    )
    assert check.paused == {lab.namespace: 1}
    assert caplog.text.count(f"failure_storm paused={lab.namespace} reason=failure_storm: 4 failures") == 1
    assert lab.submit(lab.chain(1, "other"), {})
    assert lab.one.claim() == [], "what is paused does not start"


async def test_every_sweep_looks_for_storms(orchestra: Orchestra) -> None:
    settings = SweepSettings(bursts=FailureStorm(failures=3))
    engine, processor = orchestra.engine, orchestra.processor
    sweeper = Sweeper(engine, processor, PlanStore(engine.connection), Random(1), settings)
    fail_once(orchestra.lab, "order", 4)
    await sweeper.sweep(orchestra.caller())

    assert pauses(orchestra.lab) == [(orchestra.lab.namespace, None, None, "tasker")]


@pytest.mark.parametrize(("pauses_", "template", "step"), [("template", "order", None), ("step", "order", "s0")])
async def test_less_than_the_namespace_may_be_paused(
    orchestra: Orchestra, pauses_: str, template: str, step: str | None
) -> None:
    lab = orchestra.lab
    fail_once(lab, "order", 4)
    await watch(orchestra, pauses=pauses_).check()

    assert pauses(lab) == [(lab.namespace, template, step, "tasker")]
    lab.submit(lab.chain(1, "other"), {})
    assert len(lab.one.claim()) == 1, "everything else goes on"


async def test_failures_of_different_steps_are_not_added_up(orchestra: Orchestra) -> None:
    for name in ("one", "two"):
        fail_once(orchestra.lab, name, 3)
    await watch(orchestra).check()

    assert pauses(orchestra.lab) == []


async def test_failures_before_the_window_do_not_count(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    fail_once(lab, "order", 4)
    lab.observer.execute("update tasker.step_failures set created_at = created_at - interval '601 seconds'")
    await watch(orchestra).check()

    assert pauses(lab) == []


async def test_after_a_person_has_resumed_it_only_new_failures_count(orchestra: Orchestra) -> None:
    lab, check = orchestra.lab, watch(orchestra)
    fail_once(lab, "order", 4)
    await check.check()
    lab.one.core("resume", {"namespace": lab.namespace, "actor": "ops", "reason": "mended"})
    await check.check()
    assert pauses(lab) == []
    fail_once(lab, "order", 4)
    await check.check()

    assert pauses(lab) == [(lab.namespace, None, None, "tasker")]


async def test_its_time_over_the_pause_ends_by_itself_and_a_persons_pause_does_not(orchestra: Orchestra) -> None:
    lab, check = orchestra.lab, watch(orchestra, resume_seconds=60)
    fail_once(lab, "order", 4)
    lab.one.core("pause", {"namespace": lab.namespace, "template": "order", "actor": "ops", "reason": "prices"})
    await check.check()
    await check.check()
    assert len(pauses(lab)) == 2
    lab.observer.execute("update tasker.pauses set paused_at = paused_at - interval '61 seconds'")
    await check.check()

    assert pauses(lab) == [(lab.namespace, "order", None, "ops")]
    newest = lab.one.core("paused", {"limit": 1})["log"][0]
    assert (newest["action"], newest["actor"], newest["reason"]) == (
        "resume",
        "tasker",
        "failure_storm: its time is over",
    )


async def test_without_a_limit_nobody_looks(orchestra: Orchestra) -> None:
    fail_once(orchestra.lab, "order", 20)
    await watch(orchestra, failures=0).check()

    assert pauses(orchestra.lab) == []


@pytest.mark.parametrize(("scope", "target"), [("template", ["order", None]), ("step", ["order", "s0"])])
async def test_after_a_person_has_resumed_less_than_the_namespace_only_new_failures_count(
    orchestra: Orchestra, scope: str, target: list[str | None]
) -> None:
    lab, check = orchestra.lab, watch(orchestra, pauses=scope)
    fail_once(lab, "order", 4)
    await check.check()
    named = {key: value for key, value in zip(("template", "step"), target, strict=True) if value}
    assert lab.one.core("resume", {"namespace": lab.namespace, **named, "actor": "ops", "reason": ""})["resumed"]

    await check.check()
    assert pauses(lab) == []
    fail_once(lab, "order", 4)
    await check.check()
    assert pauses(lab) == [(lab.namespace, *target, "tasker")]


async def test_of_two_that_look_at_once_one_pauses_and_the_other_waits_for_nobody(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    fail_once(lab, "order", 4)
    args = {"failures": 3, "window_seconds": 600, "pauses": "namespace", "resume_seconds": 0}

    with lab.transaction(lab.one):
        assert len(lab.one.core("failure_bursts", args)["paused"]) == 1
        assert lab.two.core("failure_bursts", args) == {"paused": [], "resumed": []}
    assert pauses(lab) == [(lab.namespace, None, None, "tasker")]


async def test_storms_in_several_namespaces_are_dealt_with_in_one_look_and_locked_one_at_a_time(
    orchestra: Orchestra,
) -> None:
    """Whoever holds rows of several namespaces has locked them in an order of its own: so one is held, and no other."""
    lab = orchestra.lab
    other = Lab(lab.url)
    try:
        names = sorted([lab.namespace, other.namespace])
        for each in (other, lab):
            fail_once(each, "order", 4)
        assert locked_by_a_look(lab, resume_seconds=60) == 1
        await watch(orchestra, resume_seconds=60).check()
        assert sorted(name for name, *_ in pauses(lab)) == names

        lab.observer.execute("update tasker.pauses set paused_at = paused_at - interval '61 seconds'")
        assert locked_by_a_look(lab, resume_seconds=60) == 1
        await watch(orchestra, resume_seconds=60).check()
        assert pauses(lab) == []
    finally:
        other.close()


def locked_by_a_look(lab: Lab, **settings: Any) -> int:
    """How many namespaces one call has locked when it ends; it is rolled back."""
    args = {"failures": 3, "window_seconds": 600, "pauses": "namespace", **settings}
    everything = lab.observer.value("select count(*) from tasker.task_namespaces")
    with lab.one.connection.transaction(force_rollback=True):
        lab.one.core("failure_bursts", args)
        free = "select count(*) from (select from tasker.task_namespaces for update skip locked) x"
        return int(everything - lab.observer.value(free))

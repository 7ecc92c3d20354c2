"""However many steps wait for somebody who has their handler: who serves others, or idles, or comes, works no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.engine.protocol.unserved.conftest import set_aside, submitted
from tests.support.engine_fixture import Lab, Session
from tests.support.fleets.at_work import AtWork
from tests.support.fleets.work import FACTOR, SLACK, Work, work_of

SMALL = 200


def idle(lab: Lab, worker: AtWork) -> Callable[[], Any]:
    return worker.look


def refilled(lab: Lab, worker: AtWork) -> Callable[[], Any]:
    """A held step that somebody serves is released beside them."""
    submitted(lab, "served", 2)
    worker.session.claim(1)
    return lambda: worker.session.call("backlog", worker.session.args(unserved=sorted(worker.unserved)))


def coming(lab: Lab, worker: AtWork) -> Callable[[], Any]:
    return lab.two.start_worker


def settled(lab: Lab, worker: AtWork) -> None:
    """The worker is alone again, and has nothing left to do."""
    lab.two.core("worker", {"action": "stop", "worker": lab.two.worker})
    lab.observer.execute(f"update pgmq.q_worker_{lab.namespace}_queue set vt = clock_timestamp()")
    worker.work(rounds=5000)


def counted(lab: Lab, worker: AtWork, call: Callable[[Lab, AtWork], Callable[[], Any]], session: Session) -> Work:
    """What the call does now, after a call that was not counted: plans are made once."""
    call(lab, worker)()
    settled(lab, worker)
    lab.one.execute("vacuum analyze tasker.ready_backlog, tasker.workflow_steps")
    again = call(lab, worker)
    work = work_of(session, again)
    settled(lab, worker)
    return work


@pytest.mark.parametrize("call", [idle, refilled, coming])
def test_it_takes_no_more_work_when_more_of_them_wait(lone_lab: Lab, call: Callable[..., Any]) -> None:
    lab = lone_lab
    lab.window = 1
    worker = AtWork(lab, lab.one, "lost")
    session = lab.two if call is coming else lab.one
    works = []
    for count in (SMALL, SMALL * (2 * FACTOR - 1)):
        submitted(lab, "lost", count)
        settled(lab, worker)
        works.append(counted(lab, worker, call, session))
        assert set_aside(lab) >= count

    small, large = works
    assert large.pages <= small.pages * SLACK + 10, (small.pages_of, large.pages_of)
    assert large.rows <= small.rows * SLACK + 10, large.heaviest


def test_setting_them_aside_takes_work_for_each_of_them(lone_lab: Lab) -> None:
    lab = lone_lab
    lab.window = 10
    worker = AtWork(lab, lab.one, "lost", slots=10)
    calls = []
    for count in (SMALL, SMALL * FACTOR):
        submitted(lab, "lost", count)
        worker.calls = 0
        calls.append(worker.work(rounds=5000).calls)

    assert set_aside(lab) == SMALL * (1 + FACTOR)
    assert calls[1] <= calls[0] * FACTOR * SLACK

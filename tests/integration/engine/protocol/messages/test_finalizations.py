"""Messages that ask to evaluate a task again: `orchestration_task_finalizations`."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.clock import new_task_uuid
from tests.integration.engine.protocol.messages.test_task_requests import Desk, desk

__all__ = ["desk"]


class _Killed(BaseException):
    """The process ends here."""


async def test_a_finalization_ends_a_task_that_was_forgotten_and_is_nothing_for_one_that_has_ended(desk: Desk) -> None:
    lab, plan = desk.lab, desk.lab.chain(1)
    task = lab.submit_one(plan)
    lab.one.run_all()
    lab.observer.execute(
        "update tasker.tasks set state = 'steps_in_process', complete = false, done = 0, active = 1 "
        "where task_uuid = %s",
        task,
    )
    for _ in range(2):
        await desk.engine.messaging.send_task_finalization({"task_uuid": task})
        assert await desk.finalize() == 1
        assert (lab.task(task).state, lab.task(task).done) == ("complete", 1)

    assert desk.refused() == []


async def test_a_finalization_that_names_no_task_is_kept_with_the_reason(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.engine.messaging.send_task_finalization({"task_uuid": (task := new_task_uuid())})
    await desk.engine.messaging.send_task_finalization({"task": 1})

    assert await desk.finalize() == 2

    assert {reason.split()[0] for reason in desk.refused()} == {"no", "task_uuid:"}
    unread, unknown = sorted(caplog.messages, key=len)
    assert unread.startswith("task_finalization_refused id=")
    assert unknown.startswith(f"task_finalization_refused task_uuid={task} id=")


async def test_a_task_whose_evaluation_is_refused_is_set_aside_and_those_beside_it_are_evaluated(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    lab, plan = desk.lab, desk.lab.chain(1)
    tasks = lab.submit(plan, {}, {}, {})
    lab.one.run_all()
    lab.observer.execute("update tasker.tasks set state = 'steps_in_process', complete = false, done = 0, active = 1")
    lab.observer.execute(
        f"create function public.refuse() returns trigger language plpgsql as $$ begin "
        f"if new.task_uuid = '{tasks[1]}' then raise data_exception using message = 'bad'; end if; return new; end $$"
    )
    lab.observer.execute(
        "create trigger refuse before update on tasker.tasks for each row execute function public.refuse()"
    )
    for task in tasks:
        await desk.engine.messaging.send_task_finalization({"task_uuid": task})

    assert await desk.finalize() == 3

    lab.observer.execute("drop function public.refuse cascade")
    assert [lab.task(task).state for task in tasks] == ["complete", "steps_in_process", "complete"]
    (kept,) = desk.refused()
    assert "bad" in kept
    (line,) = [line for line in caplog.messages if line.startswith("task_finalization_refused ")]
    ids = f"correlation_id={tasks[1]} task_uuid={tasks[1]} namespace={plan.namespace}"
    assert line.startswith(f"task_finalization_refused {ids} id=")
    await desk.engine.messaging.send_task_finalization({"task_uuid": tasks[1]})
    assert await desk.finalize() == 1, "asked for again"


async def test_a_finalization_that_ends_every_process_is_set_aside_and_those_beside_it_are_dealt_with(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = desk.lab.submit(desk.lab.chain(1), *({} for _ in range(5)))
    call, evaluated = desk.engine.call, set()

    async def kills(function: str, args: Any) -> Any:
        if function == "evaluate" and tasks[2] in args["tasks"]:
            raise _Killed
        evaluated.update(args["tasks"])
        return await call(function, args)

    monkeypatch.setattr(desk.engine, "call", kills)
    for task in tasks:
        await desk.engine.messaging.send_task_finalization({"task_uuid": task})
    deaths = 0
    for _ in range(30):
        try:
            while await desk.finalize():
                pass
        except _Killed:
            deaths += 1
            desk.lab.observer.execute("update pgmq.q_orchestration_task_finalizations set vt = clock_timestamp()")

    assert deaths == 5
    assert evaluated == {*tasks} - {tasks[2]}
    (kept,) = desk.refused()
    assert "taken 5 times" in kept
    assert f"task_finalization_refused correlation_id={tasks[2]} task_uuid={tasks[2]} " in caplog.text

"""Dead letters that failed alike are replayed through a server as they are beside the database."""

from __future__ import annotations

import pytest

import tasker
from tasker.cli.remote.dead_letters import HttpReplays
from tasker.client import HttpClient
from tasker.errors import DeadLetterNotFound, StateMachineError, UsageError
from tasker.services.operators.replays import FailureSelection
from tasker.services.submission.submit import Submission
from tests.support.registered import submit_registered

NOBODY = "00000000-0000-7000-8000-000000000000"


async def test_a_group_is_planned_begun_listed_and_steered_as_beside_the_database(
    app: tasker.App, client: HttpClient
) -> None:
    plan = (await app.plans.find("shop", "orders", "1.0.0")).plan
    for key in ("one", "two"):
        task = await submit_registered(app, plan, Submission({"amount": -1}, idempotency_key=f"replayed {key}"))
        await app.finished(task.task_uuid, timeout=20)
    through, group = HttpReplays(client), FailureSelection(namespace="shop")

    assert await through.plan(group) == await app.replays.plan(group)
    begun = await through.begin(group, rate=0.001, actor="ann", reason="the price list is back")
    assert (begun.tasks, begun.templates) == (2, {"shop/orders": 2})
    assert begun.replay_uuid is not None
    paused = await through.steer(begun.replay_uuid, "paused")
    assert paused == await app.replays.get(begun.replay_uuid)
    assert (paused.state, paused.total, paused.actor) == ("paused", 2, "ann")
    assert [each.replay_uuid for each in await through.list()] == [begun.replay_uuid]
    assert (await through.steer(begun.replay_uuid, "cancelled")).state == "cancelled"
    with pytest.raises(StateMachineError, match="has ended"):
        await through.steer(begun.replay_uuid, "running")


async def test_what_is_not_there_and_a_group_that_nobody_named_are_refused(client: HttpClient) -> None:
    through = HttpReplays(client)

    with pytest.raises(DeadLetterNotFound):
        await through.get(NOBODY)
    with pytest.raises(UsageError, match="expected a filter of entries"):
        await client.begin_replay({})
    with pytest.raises(UsageError):
        await client.begin_replay({"all": True}, rate=0)
    assert (await through.plan(FailureSelection())).replay_uuid is None

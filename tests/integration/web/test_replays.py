"""Replays of dead letters on pages: the preview, beginning one, pausing it, and what becomes of the tasks."""

from __future__ import annotations

import re

import pytest_asyncio

import tasker
from tasker.views.dead_letters import DeadLetter
from tests.integration.web.conftest import Site

REPLAY = re.compile(r"/dead-letters/replays/([0-9a-f-]{36})")
number = iter(range(400_000, 500_000))


@pytest_asyncio.fixture(loop_scope="module")
async def entries(app: tasker.App) -> list[DeadLetter]:
    """Two tasks that failed alike; those before them are closed."""
    for each in await app.dead_letters.list(status="pending", limit=500):
        await app.dead_letters.update(each.dlq_entry_uuid, status="cancelled")
    found = []
    for _ in range(2):
        submitted = await app.submit("shop/orders", {"amount": -next(number)})
        await app.wait(submitted.task_uuid)
        found.append(await app.dead_letters.of_task(submitted.task_uuid))
    return found


async def test_a_preview_says_what_would_be_done_and_does_nothing(
    app: tasker.App, site: Site, entries: list[DeadLetter]
) -> None:
    before = len(await app.replays.list())
    (fingerprint,) = entries[0].fingerprints
    text = await site.text("dead-letters/replay", fingerprint=fingerprint, rate="0.5")
    assert "2 steps of 2 tasks run again, in about 4.0 s." in text
    assert "shop/orders" in text
    assert f"tasker dlq replay --fingerprint {fingerprint} --rate 0.5/s" in text
    assert "There is nothing to replay." in await site.text("dead-letters/replay", namespace="nobody")
    assert "Choose the entries to replay." in await site.text("dead-letters/replay")
    assert "Replay 2 tasks" in await site.text("dead-letters/replay", all="yes")
    assert len(await app.replays.list()) == before
    assert {(await app.dead_letters.entry(each.dlq_entry_uuid)).resolution_status for each in entries} == {"pending"}


async def test_a_replay_is_begun_paused_resumed_and_followed_to_its_end(
    app: tasker.App, closed: Site, entries: list[DeadLetter]
) -> None:
    await closed.sign_in("everything")
    begun = await closed.post("dead-letters/replay", namespace="shop", rate="0.001", note="the shop is up")
    found = REPLAY.search(str(begun.url))
    assert found is not None
    replay = await app.replays.get(found[1])
    assert (replay.actor, replay.reason, replay.total, replay.rate_per_second) == ("ada", "the shop is up", 2, 0.001)
    (action, *_) = await app.operator_log.list(actor="ada", limit=1)
    assert (action.endpoint, action.status) == ("POST /ui/dead-letters/replay", 303)

    path = f"dead-letters/replays/{replay.replay_uuid}"
    assert "Paused" in (await closed.post(f"{path}/pause")).text
    assert (await app.replays.get(replay.replay_uuid)).state == "paused"
    assert "Go on" in await closed.text(path)
    assert "Resumed." in (await closed.post(f"{path}/resume")).text
    assert (await app.replays.get(replay.replay_uuid)).state == "running"
    assert "Ended" in (await closed.post(f"{path}/cancel")).text
    assert (await app.replays.get(replay.replay_uuid)).state == "cancelled"
    assert (await closed.post(f"{path}/pause")).status_code == 400
    assert (await closed.post(f"{path}/dance")).status_code == 400
    assert f"/ui/{path}" in await closed.text("dead-letters/replays")


async def test_what_is_replayed_runs_again_and_its_entries_are_closed(
    app: tasker.App, site: Site, entries: list[DeadLetter]
) -> None:
    begun = await site.post("dead-letters/replay", all="yes", rate="1000", note="all of it")
    found = REPLAY.search(str(begun.url))
    assert found is not None
    while (replay := await app.replays.get(found[1])).state == "running":
        await app.replays.advance(replay.replay_uuid)
    assert (replay.state, replay.replayed) == ("complete", 2)
    text = await site.text(f"dead-letters/replays/{replay.replay_uuid}")
    assert "2 of 2 tasks" in text
    assert "data-live" not in text
    for each in entries:
        await app.wait(each.task_uuid)
        assert len((await app.tasks.report(each.task_uuid)).steps["check"].failures) == 2
        kept = await app.dead_letters.entry(each.dlq_entry_uuid)
        assert kept.resolution_status == "manually_resolved"


async def test_what_was_skipped_is_named_with_its_reason(
    app: tasker.App, site: Site, entries: list[DeadLetter]
) -> None:
    begun = await site.post("dead-letters/replay", all="yes", rate="0.001", note="all of it")
    found = REPLAY.search(str(begun.url))
    assert found is not None
    await app.replays.steer(found[1], "paused")
    for each in entries:
        await app.dead_letters.update(each.dlq_entry_uuid, status="cancelled")
    await app.replays.steer(found[1], "running")
    while (replay := await app.replays.get(found[1])).state == "running":
        await app.replays.advance(replay.replay_uuid)
    skipped = await app.replays.skipped(replay.replay_uuid)
    assert len(skipped) == replay.skipped >= 1
    text = await site.text(f"dead-letters/replays/{replay.replay_uuid}")
    assert f"/ui/tasks/{skipped[-1][0]}" in text
    assert "nothing of it is to be reset any more" in text


async def test_without_a_reason_a_rate_or_entries_nothing_begins(
    app: tasker.App, site: Site, entries: list[DeadLetter]
) -> None:
    before = len(await app.replays.list())
    missing = await site.post("dead-letters/replay", all="yes", rate="7")
    assert missing.status_code == 400
    assert "a reason is missing" in missing.text
    fast = await site.post("dead-letters/replay", all="yes", rate="5000", note="quick <b>")
    assert fast.status_code == 400
    assert "quick &lt;b&gt;" in fast.text
    assert (await site.post("dead-letters/replay", note="x")).status_code == 400
    assert (await site.post("dead-letters/replay", all="yes", reason="luck", note="x")).status_code == 400
    nothing = await site.post("dead-letters/replay", namespace="nobody", note="x")
    assert "There is nothing left to replay." in nothing.text
    assert len(await app.replays.list()) == before

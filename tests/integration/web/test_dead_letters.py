"""Dead letters on pages: the queue, groups, entries, what is near its limit, and what a person does about them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import pytest_asyncio

import tasker
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.views.dead_letters import DeadLetter
from tests.integration.web.conftest import Site

EVIL = "<script>alert(1)</script>"
UNKNOWN = "00000000-0000-7000-8000-000000000000"
ENTRY = re.compile(r"/dead-letters/entries/([0-9a-f-]{36})")
PAGES = ("", "/groups", "/entries", "/stale", "/replays")
number = iter(range(300_000, 400_000))


async def failed(app: tasker.App) -> DeadLetter:
    submitted = await app.submit("shop/orders", {"amount": -next(number)})
    await app.wait(submitted.task_uuid)
    return await app.dead_letters.of_task(submitted.task_uuid)


async def waiting(app: tasker.App) -> str:
    return (
        await app.submissions.submit(TemplateSubmission("nobody", "waiting", None, Submission({"n": next(number)})))
    ).task_uuid


@pytest_asyncio.fixture(loop_scope="module")
async def entry(app: tasker.App) -> DeadLetter:
    return await failed(app)


@pytest.mark.parametrize("path", PAGES)
async def test_where_nothing_is_the_page_says_what_would_be(site: Site, path: str) -> None:
    text = await site.text(f"dead-letters{path}", namespace="empty")
    assert 'class="empty"' in text
    assert "tasker dlq" in text


async def test_an_entry_is_in_the_queue_in_its_group_and_in_the_list(
    app: tasker.App, site: Site, entry: DeadLetter
) -> None:
    link = f"/ui/dead-letters/entries/{entry.dlq_entry_uuid}"
    assert link in await site.text("dead-letters")
    assert link in await site.text("dead-letters", namespace="shop")
    assert link not in await site.text("dead-letters", namespace="nobody")
    for path in ("", "/entries", f"/entries/{entry.dlq_entry_uuid}"):  # it failed at once, and was never to be retried
        text = (await site.text(f"dead-letters{path}")).lower()
        assert ("a step failed in a way that no retry changes" in text, "retries exceeded" in text) == (True, False)
    (fingerprint,) = entry.fingerprints
    groups = await site.text("dead-letters/groups")
    assert fingerprint in groups
    assert "less than nothing" in groups
    assert "entries in the last 24 hours" in groups
    for query in (
        {},
        {"status": "pending"},
        {"reason": "permanent_failure"},
        {"template": "orders"},
        {"fingerprint": fingerprint},
    ):
        assert link in await site.text("dead-letters/entries", **query), query
    for other in ({"status": "cancelled"}, {"reason": "manual_dlq"}, {"template": "cards"}, {"fingerprint": "no"}):
        assert link not in await site.text("dead-letters/entries", **other), other


async def test_a_trend_counts_entries_in_their_slices(app: tasker.App, entry: DeadLetter) -> None:
    (fingerprint,) = entry.fingerprints
    trend = await app.dead_letters.trend([fingerprint, "other"], hours=24, slices=24)
    assert (len(trend[fingerprint]), sum(trend["other"])) == (24, 0)
    assert trend[fingerprint][-1] == sum(trend[fingerprint]) >= 1
    assert sum((await app.dead_letters.trend([fingerprint], namespaces=["nobody"]))[fingerprint]) == 0


async def test_entries_are_paged_and_none_is_shown_twice(app: tasker.App, site: Site) -> None:
    made = [(await app.dead_letters.open(await waiting(app), actor="ada", notes=str(n))) for n in range(60)]
    expected = [each.dlq_entry_uuid for each in reversed(made)]
    text = await site.text("dead-letters/entries", reason="manual_dlq", namespace="nobody")
    shown = ENTRY.findall(text)
    assert shown == expected[:50]
    older = re.search(r'rel="next" href="/ui/([^"]+)"', text)
    assert older is not None
    rest = (await site.client.get(f"/ui/{older[1]}")).text
    assert ENTRY.findall(rest) == expected[50:]
    assert 'rel="next"' not in rest


async def test_an_entry_shows_what_was_known_and_what_failed(site: Site, entry: DeadLetter) -> None:
    text = await site.text(f"dead-letters/entries/{entry.dlq_entry_uuid}")
    assert "permanent_error: less than nothing" in text
    assert f"/ui/tasks/{entry.task_uuid}?step=check" in text
    assert f"tasker dlq show {entry.dlq_entry_uuid}" in text
    assert f"tasker dlq retry {entry.dlq_entry_uuid} --reason" in text
    assert '"workflow_steps"' in text
    found = await site.get(f"dead-letters/tasks/{entry.task_uuid}")
    assert found.headers["location"] == f"/ui/dead-letters/entries/{entry.dlq_entry_uuid}"


async def test_what_was_found_is_kept_and_the_entry_is_closed_and_opened_again(
    app: tasker.App, closed: Site, entry: DeadLetter
) -> None:
    await closed.sign_in("everything")
    path = f"dead-letters/entries/{entry.dlq_entry_uuid}"
    noted = await closed.post(f"{path}/update", notes=f"looking {EVIL}", status="pending")
    assert EVIL not in noted.text
    kept = await app.dead_letters.entry(entry.dlq_entry_uuid)
    assert (kept.resolution_notes, kept.resolution_status, kept.resolved_by) == (f"looking {EVIL}", "pending", None)

    await closed.post(f"{path}/update", notes="corrected", status="manually_resolved")
    kept = await app.dead_letters.entry(entry.dlq_entry_uuid)
    assert (kept.resolution_notes, kept.resolution_status, kept.resolved_by) == (
        "corrected",
        "manually_resolved",
        "ada",
    )
    (action, *_) = await app.operator_log.list(actor="ada", limit=1)
    assert (action.endpoint, action.status) == ("POST /ui/dead-letters/entries/{entry}/update", 303)

    await closed.post(f"{path}/update", notes="", status="pending")
    kept = await app.dead_letters.entry(entry.dlq_entry_uuid)
    assert (kept.resolution_notes, kept.resolution_status) == ("", "pending")


async def test_what_cannot_be_kept_is_told_and_stays_in_its_field(
    app: tasker.App, site: Site, entry: DeadLetter
) -> None:
    path = f"dead-letters/entries/{entry.dlq_entry_uuid}"
    answer = await site.post(f"{path}/update", notes="what I found", status="happy")
    assert answer.status_code == 400
    assert "is not a valid status of a dead letter" in answer.text
    assert "what I found" in answer.text
    assert (await site.post(f"{path}/retry")).status_code == 400
    assert (await app.dead_letters.entry(entry.dlq_entry_uuid)).resolution_status == "pending"


async def test_failed_steps_run_again_and_the_entry_is_closed(app: tasker.App, closed: Site, entry: DeadLetter) -> None:
    await closed.sign_in("everything")
    await app.dead_letters.update(entry.dlq_entry_uuid, notes="the shop was down")
    path = f"dead-letters/entries/{entry.dlq_entry_uuid}"

    answer = await closed.post(f"{path}/retry", reason="it is up")
    await app.wait(entry.task_uuid)

    assert "1 step will run again, and the entry is closed." in answer.text
    assert len((await app.tasks.report(entry.task_uuid)).steps["check"].failures) == 2
    kept = await app.dead_letters.entry(entry.dlq_entry_uuid)
    assert (kept.resolution_status, kept.resolved_by) == ("manually_resolved", "ada")
    assert kept.resolution_notes == "the shop was down\nretried: it is up"
    assert (await app.dead_letters.of_task(entry.task_uuid)).dlq_entry_uuid != entry.dlq_entry_uuid


async def test_a_task_is_put_on_the_list_by_hand(app: tasker.App, closed: Site) -> None:
    await closed.sign_in("everything")
    task = await waiting(app)
    answer = await closed.post("dead-letters/open", task=task, notes="looks odd")
    assert "The task is on the list" in answer.text
    opened = await app.dead_letters.of_task(task)
    assert (opened.dlq_reason, opened.resolution_notes) == ("manual_dlq", "looks odd")
    assert (opened.metadata or {})["opened_by"] == "ada"
    assert (await closed.post("dead-letters/open", task=task, notes="again")).status_code == 400
    assert (await closed.post("dead-letters/open", task="x", notes="again")).status_code == 400
    assert (await closed.post("dead-letters/open", task=UNKNOWN, notes="again")).status_code == 404


async def test_tasks_near_their_limit_are_told_with_what_excuses_them(app: tasker.App, site: Site) -> None:
    task = await waiting(app)
    text = await site.text("dead-letters/stale", namespace="nobody")
    assert f"/ui/tasks/{task}" in text
    assert "healthy" in text


async def test_words_of_entries_and_of_addresses_are_text(app: tasker.App, site: Site) -> None:
    entry = await app.dead_letters.open(await waiting(app), actor=EVIL, notes=EVIL, metadata={EVIL: EVIL})
    await app.dead_letters.update(entry.dlq_entry_uuid, status="cancelled", by=EVIL)
    path = f"dead-letters/entries/{entry.dlq_entry_uuid}"
    assert (await site.get(path)).text.count("&lt;script&gt;") > 3
    for page in (*(f"dead-letters{each}" for each in PAGES), path, "dead-letters/replay"):
        for query in ({}, {"namespace": EVIL, "template": EVIL, "fingerprint": EVIL}):
            answer = await site.get(page, **query)
            assert answer.status_code == 200
            assert EVIL not in answer.text, (page, query)


async def test_who_may_not_read_what_is_sensitive_reads_no_messages(app: tasker.App, closed: Site) -> None:
    submitted = await app.submit(
        "shop/cards", {"card": {"number": "4711-secret", "brand": "visa"}, "shop": str(next(number))}
    )
    await app.wait(submitted.task_uuid)
    entry = await app.dead_letters.of_task(submitted.task_uuid)
    await closed.sign_in("but-data:read_sensitive")
    for path in ("dead-letters", "dead-letters/groups", f"dead-letters/entries/{entry.dlq_entry_uuid}"):
        assert "4711-secret" not in await closed.text(path), path
    assert "is refused" not in await closed.text("dead-letters/groups")
    await closed.sign_in("everything")
    assert "is refused" in await closed.text("dead-letters/groups")


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("entries", {"status": "happy"}, 400),
        ("entries", {"reason": "bad luck"}, 400),
        ("entries", {"after": "nonsense"}, 400),
        ("entries/nonsense", {}, 400),
        (f"entries/{UNKNOWN}", {}, 404),
        ("tasks/nonsense", {}, 400),
        (f"tasks/{UNKNOWN}", {}, 404),
        ("groups", {"namespace": "x" * 300}, 400),
        ("replays/nonsense", {}, 400),
        (f"replays/{UNKNOWN}", {}, 404),
        ("replay", {"reason": "bad luck"}, 400),
        ("replay", {"since": "soon"}, 400),
        ("replay", {"rate": "fast"}, 400),
        ("replay", {"rate": "1e9"}, 400),
    ],
)
async def test_an_address_that_asks_for_nonsense_is_told_so(
    site: Site, path: str, query: dict[str, Any], status: int
) -> None:
    answer = await site.get(f"dead-letters/{path}", **query)
    assert answer.status_code == status
    assert 'role="alert"' in answer.text


async def test_without_its_permission_a_page_is_not_shown_and_nothing_is_done(
    app: tasker.App, closed: Site, entry: DeadLetter
) -> None:
    path = f"dead-letters/entries/{entry.dlq_entry_uuid}"
    await closed.sign_in("but-dlq:read")
    for page in (*(f"dead-letters{each}" for each in PAGES), path):
        assert (await closed.get(page)).status_code == 403, page
    await closed.sign_in("only-dlq:read")
    text = await closed.text(path)
    for action in ("update", "retry"):
        assert f"{path}/{action}" not in text
        answer = await closed.post(f"{path}/{action}", status="cancelled", notes="x", reason="x")
        assert answer.status_code == 403
    assert (await closed.post("dead-letters/open", task=entry.task_uuid, notes="x")).status_code == 403
    assert (await closed.get("dead-letters/replay")).status_code == 403
    assert (await closed.post("dead-letters/replay", all="yes", note="x")).status_code == 403
    await closed.sign_in("but-dlq:update")
    assert (await closed.post(f"{path}/retry", reason="x")).status_code == 403
    assert (await app.dead_letters.entry(entry.dlq_entry_uuid)).resolution_status == "pending"
    assert len((await app.tasks.report(entry.task_uuid)).steps["check"].failures) == 1


async def test_who_is_confined_sees_and_changes_nothing_of_others(app: tasker.App, closed: Site) -> None:
    theirs = await app.dead_letters.open(await waiting(app), actor="ada")
    await closed.sign_in("confined")
    path = f"dead-letters/entries/{theirs.dlq_entry_uuid}"
    for page in ("dead-letters", "dead-letters/entries", "dead-letters/groups", "dead-letters/stale"):
        text = await closed.text(page)
        assert theirs.dlq_entry_uuid not in text, page
        assert theirs.task_uuid not in text, page
        assert theirs.task_uuid not in await closed.text(page, namespace="nobody"), page
    assert (await closed.get(path)).status_code == 404
    assert (await closed.get(f"dead-letters/tasks/{theirs.task_uuid}")).status_code == 404
    assert (await closed.post(f"{path}/update", status="cancelled")).status_code == 404
    assert (await closed.post(f"{path}/retry", reason="x")).status_code == 404
    assert (await closed.post("dead-letters/open", task=theirs.task_uuid, notes="x")).status_code == 404
    assert (await closed.get("dead-letters/replay", all="yes")).status_code == 403
    assert (await app.dead_letters.entry(theirs.dlq_entry_uuid)).resolution_status == "pending"


async def test_a_form_of_another_site_changes_no_entry(app: tasker.App, site: Site, entry: DeadLetter) -> None:
    path = f"/ui/dead-letters/entries/{entry.dlq_entry_uuid}/update"
    answer = await site.client.post(path, data={"form_token": "x" * 43, "status": "cancelled"})
    assert answer.status_code == 403
    assert (await app.dead_letters.entry(entry.dlq_entry_uuid)).resolution_status == "pending"

"""What is done on a page has its row in the transaction of what it does; what was refused has one with the reason."""

from __future__ import annotations

import re
from itertools import count

import pytest

import tasker
from tests.integration.app.kept_actions import Written, rows_written
from tests.integration.web.conftest import Site
from tests.integration.web.test_tasks import orders, waiting

number = count(7_000)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    return rows_written(monkeypatch)


async def newest(app: tasker.App, many: int) -> list[tuple[str, int | None, str | None]]:
    """The newest actions, the oldest first."""
    found = await app.operator_log.list(limit=many)
    return [(each.endpoint, each.status, each.refusal) for each in reversed(found)]


async def test_what_is_done_and_what_is_refused_on_the_page_of_a_task(
    app: tasker.App, site: Site, written: Written
) -> None:
    (task,) = await waiting(app, 1)
    for _ in range(2):
        await site.post(f"tasks/{task}/cancel", reason="no need", follow=False)
    await site.post(f"tasks/{task}/cancel", reason="", follow=False)
    endpoint = "POST /ui/tasks/{uuid}/cancel"
    done, refused, unsaid = await newest(app, 3)
    assert done == (endpoint, 303, None)
    assert refused == (endpoint, 400, f"task {task} is cancelled and cannot be cancelled")
    assert unsaid[:2] == (endpoint, 400)
    assert written == [(True, 303), (True, 303)]


async def test_a_dead_letter_is_retried_and_closed_as_one_action(app: tasker.App, site: Site, written: Written) -> None:
    (task,) = await orders(app, -next(number))
    entry = (await app.dead_letters.of_task(task)).dlq_entry_uuid
    answer = await site.post(f"dead-letters/entries/{entry}/retry", reason="mended", follow=False)
    assert answer.status_code == 303
    assert written == [(True, 303)]
    endpoint = "POST /ui/dead-letters/entries/{entry}/retry"
    assert [row for row in await newest(app, 2) if row[0] == endpoint] == [(endpoint, 303, None)]
    found = await app.dead_letters.entry(entry)
    assert (found.resolution_status, found.resolution_notes) == ("manually_resolved", "retried: mended")


async def test_a_view_is_kept_with_its_row(app: tasker.App, site: Site, written: Written) -> None:
    await site.post("tasks/views", address="status=error", name="broken", follow=False)
    await site.post("tasks/views/remove", name="broken", follow=False)
    assert written == [(True, 303)] * 2
    assert await newest(app, 2) == [("POST /ui/tasks/views", 303, None), ("POST /ui/tasks/views/remove", 303, None)]


async def test_many_at_once_have_a_row_before_the_first(app: tasker.App, site: Site, written: Written) -> None:
    tasks = await waiting(app, 2)
    answer = await site.post("tasks/bulk", action="cancel", reason="no need", left=" ".join(tasks))
    assert re.search("All 2 are processed", answer.text)
    assert written == [(False, None)]
    assert await newest(app, 1) == [("POST /ui/tasks/bulk", 200, None)]

"""The first page tells what happens and what needs a person."""

from __future__ import annotations

import tasker
from tasker.services.operators.pauses import PauseTarget
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tests.integration.web.conftest import Site


async def test_what_needs_a_person_is_a_link_to_it(app: tasker.App, site: Site) -> None:
    assert "no dead letters" in await site.text()
    failed = await app.submit("shop/orders", {"amount": -1})
    await app.wait(failed.task_uuid)
    await app.submissions.submit(TemplateSubmission("nobody", "waiting", None, Submission({})))

    text = await site.text()

    assert "1 dead letter to resolve" in text
    assert 'href="/ui/dead-letters"' in text
    assert "nobody: 1 step in the queue, and no live worker" in text
    assert "shop/orders:1.0.0" in text


async def test_the_pause_of_a_namespace_is_told(app: tasker.App, site: Site) -> None:
    await app.pauses.pause(PauseTarget.of("nobody"), actor="ada", reason="to see")
    assert "1 pause active" in await site.text()
    await app.pauses.resume(PauseTarget.of("nobody"), actor="ada", reason="seen")

"""Many tasks through a server have the answers that they have beside the database."""

from __future__ import annotations

import tasker
from tasker.cli.remote.http_fleet import HttpFleet
from tasker.client import HttpClient
from tasker.errors import TaskerError
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission, SubmissionResult


async def test_each_order_has_an_answer_of_its_own(app: tasker.App, client: HttpClient) -> None:
    fine = TemplateSubmission("shop", "orders", None, Submission({"amount": 3}, idempotency_key="ordered", tags=["a"]))
    orders = [
        fine,
        TemplateSubmission("shop", "nothing", None, Submission({})),
        TemplateSubmission("shop", "orders", None, Submission({"amount": "x"})),
    ]
    through = HttpFleet(client)

    answers = await through.submissions.submit_many(orders)
    beside = await app.submissions.submit_many(orders, on_duplicate="return")

    assert isinstance(answers[0], SubmissionResult)
    assert isinstance(beside[0], SubmissionResult)
    assert (answers[0].task_uuid, answers[0].created) == (beside[0].task_uuid, True)
    for ours, theirs in zip(answers[1:], beside[1:], strict=True):
        assert isinstance(ours, TaskerError)
        assert type(ours) is type(theirs)
    (again,) = await through.submissions.submit_many([fine], on_duplicate="return")
    assert again == beside[0]

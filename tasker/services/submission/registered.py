"""Submission of tasks of registered templates: one, or many with an answer for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from tasker.dataclasses import dataclass
from tasker.engine.plans import PlanStore
from tasker.errors import TaskerError
from tasker.services.submission.parents import within_handler
from tasker.services.submission.submit import (
    Draft,
    OnDuplicate,
    Submission,
    SubmissionResult,
    Submitter,
    existing_task_or_error,
)
from tasker.services.tasks.waiting import Waiters
from tasker.template.plan import Plan

Answer = SubmissionResult | TaskerError


@dataclass(frozen=True, slots=True)
class TemplateSubmission:
    """Task to create from a registered template; `version` None means the one registered last. `client` is the
    authenticated client that asks for it."""

    namespace: str
    template: str
    version: str | None
    request: Submission
    client: str | None = None


class Submissions:
    """Service that creates tasks of registered templates, for the workers that serve them.

    `waiters` are those of this program; `wake` is called after a submission, for a worker in the same program.
    """

    def __init__(self, submitter: Submitter, plans: PlanStore, waiters: Waiters, wake: Callable[[], None]) -> None:
        self._submitter, self._plans, self._waiters, self._wake = submitter, plans, waiters, wake

    async def submit(
        self, order: TemplateSubmission, *, on_duplicate: OnDuplicate = "refuse", awaited: bool = False
    ) -> SubmissionResult:
        """Create a task; `on_duplicate` and `awaited` are as in `App.submit`.

        Raises `TemplateNotFound` and the errors of `App.submit`.
        """
        plan = (await self._plans.find(order.namespace, order.template, order.version)).plan
        request = within_handler(order.request)
        registration = self._waiters.register(awaited)
        submitted = await self._submitter.submit(
            plan, request, on_duplicate=on_duplicate, waiter=registration.waiter, client=order.client
        )
        self._waiters.submitted(registration, [submitted])
        self._wake()
        return submitted

    async def submit_many(
        self, orders: Sequence[TemplateSubmission], *, on_duplicate: OnDuplicate = "refuse"
    ) -> list[Answer]:
        """Create tasks, those of one template in one transaction, and return a result or an error for each, in order.

        Raises nothing: an error of one task does not affect the others, and a database error of a transaction is the
        answer for each of its tasks.
        """
        answers: dict[int, Answer] = {}
        groups: dict[tuple[str, str, str | None], list[int]] = defaultdict(list)
        for place, order in enumerate(orders):
            groups[order.namespace, order.template, order.version].append(place)
        for name, places in groups.items():
            try:
                plan = (await self._plans.find(*name)).plan
                requests = {place: within_handler(orders[place].request) for place in places}
                answers |= await self._of_one_template(plan, requests, orders[places[0]].client)
            except TaskerError as error:
                answers |= dict.fromkeys(places, error)
        self._wake()
        return [existing_task_or_error(answers[place], on_duplicate) for place in range(len(orders))]

    async def _of_one_template(
        self, plan: Plan, requests: dict[int, Submission], client: str | None
    ) -> dict[int, Answer]:
        answers: dict[int, Answer] = {}
        drafts: dict[int, Draft] = {}
        for place, request in requests.items():
            try:
                drafts[place] = self._submitter.drafts.draft(plan, request)
            except TaskerError as error:
                answers[place] = error
        made = await self._submitter.submit_drafts(plan, list(drafts.values()), client=client) if drafts else []
        return {**answers, **dict(zip(drafts, made, strict=True))}

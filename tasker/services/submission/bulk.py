"""Submission of many tasks of any templates, with an answer for each: an invalid one does not prevent the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tasker.dataclasses import dataclass
from tasker.engine.plans import PlanStore
from tasker.errors import TaskerError
from tasker.services.submission.submit import (
    Draft,
    OnDuplicate,
    Submission,
    SubmissionResult,
    Submitter,
    existing_task_or_error,
)
from tasker.template.plan import Plan

Answer = SubmissionResult | TaskerError


@dataclass(frozen=True, slots=True)
class TemplateSubmission:
    """Task to create from a registered template; `version` None means the one registered last."""

    namespace: str
    template: str
    version: str | None
    request: Submission


class BulkSubmitter:
    """Service that creates tasks, those of one template in one transaction."""

    def __init__(self, submitter: Submitter, plans: PlanStore) -> None:
        self._submitter, self._plans = submitter, plans

    async def submit(
        self, orders: Sequence[TemplateSubmission], *, on_duplicate: OnDuplicate = "refuse"
    ) -> list[Answer]:
        """Submit the tasks and return their answers in order.

        Raises nothing: a database error of a transaction is the answer for each of its tasks.
        """
        answers: dict[int, Answer] = {}
        groups: dict[tuple[str, str, str | None], list[int]] = defaultdict(list)
        for place, order in enumerate(orders):
            groups[order.namespace, order.template, order.version].append(place)
        for name, places in groups.items():
            try:
                plan = (await self._plans.find(*name)).plan
                answers |= await self._of_one_template(plan, {place: orders[place].request for place in places})
            except TaskerError as error:
                answers |= dict.fromkeys(places, error)
        return [existing_task_or_error(answers[place], on_duplicate) for place in range(len(orders))]

    async def _of_one_template(self, plan: Plan, requests: dict[int, Submission]) -> dict[int, Answer]:
        answers: dict[int, Answer] = {}
        drafts: dict[int, Draft] = {}
        for place, request in requests.items():
            try:
                drafts[place] = self._submitter.drafts.draft(plan, request)
            except TaskerError as error:
                answers[place] = error
        made = await self._submitter.submit_drafts(plan, list(drafts.values())) if drafts else []
        return {**answers, **dict(zip(drafts, made, strict=True))}

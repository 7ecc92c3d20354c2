"""Tasks of registered templates, for any worker."""

from __future__ import annotations

from typing import Any

from tasker.app.app import App
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template.plan import Plan


async def submit_registered(app: App, plan: Plan, request: Submission, **options: Any) -> SubmissionResult:
    """Register the plan and create a task of it, which this app does not serve."""
    await app.plans.register(plan, force=True)
    return await app.submissions.submit(order(plan, request), **options)


def order(plan: Plan, request: Submission) -> TemplateSubmission:
    """Name the plan as a registered template."""
    return TemplateSubmission(plan.namespace, plan.name, plan.version, request)

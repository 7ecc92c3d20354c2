"""The page of a task whose effects are undone, or whose last steps run."""

from __future__ import annotations

import tasker
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tests.integration.web.conftest import Site
from tests.integration.web.test_task import VIEWS, actions

UNDONE = """
name: undone
namespace: shop
version: 1.0.0
on_failure: compensate
finally: [report]
steps:
  - {name: book, handler: shop.check_nothing, compensate: shop.check_nothing}
  - {name: pay, handler: shop.check, dependencies: [book]}
  - {name: report, handler: shop.check}
"""


async def test_steps_of_a_task_whose_effects_are_undone_do_not_run_again_in_it(app: tasker.App, site: Site) -> None:
    await app.plans.register(compile_text(UNDONE).plans[0])
    task = (await app.submit("shop/undone", {"amount": -1})).task_uuid
    await app.wait(task)
    assert (await app.tasks.report(task)).outcome == "compensated"

    repairs = {"Run again", "Resolve", "Complete with data"}
    offered_for = {step: actions(await site.text(f"tasks/{task}", step=step)) for step in ("pay", "report")}

    assert (offered_for["pay"] & repairs, "Rerun from here" in offered_for["pay"]) == (set(), True)
    assert offered_for["report"] & repairs == repairs


async def test_last_steps_that_ran_again_have_a_page(app: tasker.App, site: Site) -> None:
    plain = UNDONE.replace("on_failure: compensate", "").replace("name: undone", "name: twice")
    await app.plans.register(compile_text(plain).plans[0])
    task = (await app.submit("shop/twice", {"amount": -1})).task_uuid
    await app.wait(task)
    await app.steps.reset(task, "pay", actor="ada", reason="again")
    await app.wait(task)

    assert (await app.tasks.explain(task, "report.2")).task_uuid == task
    for view in VIEWS:
        assert "report.2" in await site.text(f"tasks/{task}", step="report.2", view=view)


async def test_page_does_not_call_a_task_cancelled_whose_last_steps_run(app: tasker.App, site: Site) -> None:
    await app.plans.register(compile_text(UNDONE.replace("namespace: shop", "namespace: nobody")).plans[0])
    order = TemplateSubmission("nobody", "undone", None, Submission({}))
    task = (await app.submissions.submit(order)).task_uuid

    text = (await site.post(f"tasks/{task}/cancel", reason="enough")).text

    assert "The task is cancelled." not in text
    assert "Its steps of finally run before it ends." in text
    assert "The task is cancelled." in (await site.post(f"tasks/{task}/cancel", reason="enough")).text

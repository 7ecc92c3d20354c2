"""Tasks that a handler creates through a server: children of its step, the same one in each attempt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import pytest_asyncio

import tasker
from tasker.client import HttpClient
from tasker.clock import new_uuid
from tasker.errors import UsageError
from tasker.handlers.claims import Claim
from tasker.logging.current_step import running
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tests.integration.api.program import WAITING

NOWHERE = "01900000-0000-7000-8000-000000000001"


@contextmanager
def within(task: str, step: str, correlation: str) -> Iterator[None]:
    """As in the handler of this step."""
    entered = running.set(Claim(step, task, "a", 1, 0, "nobody", 7, 1, 3, correlation))
    try:
        yield
    finally:
        running.reset(entered)


@pytest_asyncio.fixture(loop_scope="module")
async def parent(app: tasker.App) -> tuple[str, str]:
    """A task and its first step."""
    await app.plans.register(compile_text(WAITING).plans[0])
    request = Submission({"parent": NOWHERE}, idempotency_key=new_uuid())
    task = (await app.submissions.submit(TemplateSubmission("nobody", "waiting", None, request))).task_uuid
    return task, next(iter((await app.tasks.report(task)).steps.values())).step_uuid


async def test_a_handler_gets_the_task_of_its_first_attempt(client: HttpClient, parent: tuple[str, str]) -> None:
    task, step = parent
    with within(task, step, task):
        first = await client.create_task("waiting", namespace="nobody", context={"n": 1})
        again = await client.create_task("waiting", namespace="nobody", context={"n": 1})
        other = await client.create_task("waiting", namespace="nobody", context={"n": 1}, key="b")
        (batched,) = (await client.create_tasks([{"name": "waiting", "namespace": "nobody", "context": {"n": 1}}]))[
            "results"
        ]

    assert (first.created, again.created, again.task_uuid) == (True, False, first.task_uuid)
    assert other.task_uuid != first.task_uuid == batched["task_uuid"]
    assert (first.parent_step_uuid, first.parent_task_uuid, first.parent_correlation_id) == (step, task, task)
    family = await client.get_task_children(task, limit=1)
    assert (sum(family.counts.values()), family.next_after) == (2, family.children[0].task_uuid)
    assert (await client.get_task_children(first.task_uuid)).parent.task_uuid == task  # type: ignore[union-attr]


async def test_a_step_of_another_database_gives_a_task_no_parent(client: HttpClient, parent: tuple[str, str]) -> None:
    with within(f"{NOWHERE[:-6]}000000", NOWHERE, ""):
        made = [await client.create_task("waiting", namespace="nobody", context={}) for _ in range(2)]

    assert made[0].task_uuid == made[1].task_uuid
    assert (made[0].parent_step_uuid, made[0].parent_task_uuid) == (None, None)


async def test_a_key_without_a_handler_is_refused(client: HttpClient, parent: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="not within a handler"):
        await client.create_task("waiting", namespace="nobody", key="x")

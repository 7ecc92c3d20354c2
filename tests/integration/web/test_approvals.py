"""Approvals over HTTP: the API, pages of persons who sign in, and pages of signed links."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import AsyncMock

import pytest
import pytest_asyncio

import tasker
from tasker.errors import DatabaseError, StateMachineError
from tasker.redaction import REDACTED
from tasker.services.approval_links import LinkSigner
from tasker.services.approvals import Approvals
from tasker.settings.http import ApiKeyEntry
from tasker.template import compile_text
from tests.integration.web import conftest
from tests.integration.web.conftest import Site, offered

EXPENSE = """
name: expense
namespace: shop
version: 1
identity_strategy: always_unique
input_schema:
  type: object
  required: [amount, pin]
  properties: {amount: {type: integer}, pin: {type: integer, x-sensitive: true}, chief: {type: string}}
steps:
  - name: approve
    type: approval
    description: Approve <b>this</b>
    from: {subjects: [ann, bob], permissions: ["approvals:finance"]}
    quorum: 2
    inputs: {amount_in_cents: "${input.amount}", pin: "${input.pin}", items: ["Chair", "Lamp"]}
    form:
      type: object
      required: [cost_center]
      properties:
        cost_center: {type: string, enum: [travel, office]}
        sure: {type: boolean}
        pay_on: {type: string, format: date}
        limit: {type: integer, minimum: 1}
        code: {type: string, x-sensitive: true}
    timeout: 2d
"""
NESTED = (
    EXPENSE.replace("expense", "nested")
    .replace("quorum: 2", "quorum: 1")
    .replace(
        "      properties:\n",
        """      dependentRequired: {sure: [pay_on]}
      properties:
        lines: {type: array, items: {type: object, properties: {sku: {type: string, minLength: 3}}}}
        place: {type: object, minProperties: 2, properties: {city: {type: string}}}
""",
    )
)
PERSONS = (
    ApiKeyEntry(key="key-of-ann", permissions=("approvals:decide",), name="ann"),
    ApiKeyEntry(key="key-of-eve", permissions=("approvals:decide",), name="eve"),
    ApiKeyEntry(key="key-of-fay", permissions=("approvals:decide", "approvals:finance:shop"), name="fay"),
    ApiKeyEntry(key="key-of-gus", permissions=("approvals:decide", "approvals:finance:elsewhere"), name="gus"),
)
FORM = {"input:/cost_center": '"travel"', "decision": "approved"}


@pytest_asyncio.fixture(loop_scope="module", params=[EXPENSE])
async def asked(app: tasker.App, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A task that waits for persons: two, unless a test names another template."""
    (plan,) = compile_text(request.param).plans
    task = (await app.submit(plan, {"amount": 1234, "pin": 4711})).task_uuid
    while not any(row.task_uuid == task for row in await app.approvals.list()):
        await asyncio.sleep(0.02)
    yield task
    with suppress(StateMachineError):
        await app.tasks.cancel(task, actor="test", reason="over")


@pytest_asyncio.fixture(loop_scope="module")
async def persons(app: tasker.App, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setattr(conftest, "KEYS", PERSONS)
    async with offered(app, closed=True) as made:
        yield made


@pytest.fixture
def signer(app: tasker.App, monkeypatch: pytest.MonkeyPatch) -> LinkSigner:
    made = LinkSigner(("a" * 32, "b" * 32))
    monkeypatch.setattr(app.approvals, "_signer", made)
    return made


async def api(site: Site, key: str, method: str, path: str, **json: Any) -> Any:
    headers = {"X-API-Key": key}
    return await site.client.request(method, f"/v1/approvals{path}", headers=headers, json=json or None)


async def test_a_caller_lists_and_decides_what_is_theirs(persons: Site, asked: str) -> None:
    rows = (await api(persons, "key-of-ann", "GET", "")).json()
    assert [row["task_uuid"] for row in rows] == [asked]
    for name in ("eve", "gus"):
        assert (await api(persons, f"key-of-{name}", "GET", "")).json() == []
        assert (await api(persons, f"key-of-{name}", "GET", f"/{asked}/approve")).status_code == 403
        refused = await api(persons, f"key-of-{name}", "POST", f"/{asked}/approve/decision", decision="rejected")
        assert (refused.status_code, name in refused.json()["detail"]) == (403, True)
    assert (await api(persons, "key-of-ann", "GET", "?mine=false")).status_code == 403
    vote = {"decision": "approved", "form": {"cost_center": "office"}, "comment": "ok"}

    counted = await api(persons, "key-of-ann", "POST", f"/{asked}/approve/decision", **vote)
    again = await api(persons, "key-of-ann", "POST", f"/{asked}/approve/decision", **vote)

    assert (counted.status_code, counted.json()["approved"], counted.json()["ended"]) == (200, 1, False)
    assert (again.status_code, again.json()["code"]) == (409, "approval_decided")
    assert "ann has approved 'approve' already" in again.json()["detail"]
    assert (await api(persons, "key-of-ann", "GET", "")).json() == [], "it waits for others now"
    last = await api(persons, "key-of-fay", "POST", f"/{asked}/approve/decision", **vote)
    assert (last.json()["ended"], last.json()["outcome"]) == (True, "approved")


async def test_a_form_that_does_not_fit_names_its_fields(persons: Site, asked: str) -> None:
    answer = await api(
        persons, "key-of-ann", "POST", f"/{asked}/approve/decision", decision="approved", form={"limit": 0}
    )
    assert answer.status_code == 422
    assert {error["pointer"] for error in answer.json()["errors"]} == {"/cost_center", "/limit"}


async def test_a_reader_without_the_right_sees_no_secret(persons: Site, asked: str) -> None:
    form = {"cost_center": "office", "code": "x-1234"}
    await api(persons, "key-of-ann", "POST", f"/{asked}/approve/decision", decision="approved", form=form)

    shown = (await api(persons, "key-of-fay", "GET", f"/{asked}/approve")).json()

    assert (shown["inputs"]["amount_in_cents"], shown["inputs"]["pin"]) == (1234, REDACTED)
    assert shown["votes"][0]["form"] == {"cost_center": "office", "code": REDACTED}


async def test_each_decision_is_in_the_audit_log(app: tasker.App, persons: Site, asked: str) -> None:
    await api(persons, "key-of-ann", "POST", f"/{asked}/approve/decision", decision="rejected", comment="no")

    newest = (await app.operator_log.list(limit=1))[0]

    assert (newest.actor, newest.proof, newest.status) == ("ann", "api_key", 200)
    assert asked in newest.path


async def test_a_person_decides_on_the_page(app: tasker.App, persons: Site, asked: str) -> None:
    await persons.sign_in("key-of-ann")
    assert f'href="/ui/approvals/{asked}/approve"' in await persons.text("approvals")
    raw = (await persons.get(f"approvals/{asked}/approve")).text
    assert "Approve &lt;b&gt;this&lt;/b&gt;" in raw
    for part in ("Amount in cents", "Chair, Lamp", 'type="radio"', 'type="date"', 'type="number"', 'value="approved"'):
        assert part in raw, part
    assert "4711" not in raw

    wrong = await persons.post(f"approvals/{asked}/approve", decision="approved", **{"input:/limit": "0"})
    assert wrong.status_code == 422
    assert "expected at least 1, found 0" in wrong.text
    assert "is required and missing" in wrong.text
    done = await persons.post(f"approvals/{asked}/approve", **FORM, comment="fine")
    assert "1 of 2 have approved" in done.text
    assert "You have decided" in await persons.text(f"approvals/{asked}/approve")
    (vote,) = (await app.approvals.get(asked, "approve")).votes
    assert (vote.by, vote.via, vote.form, vote.comment) == ("ann", "page", {"cost_center": "travel"}, "fine")


@pytest.mark.parametrize("asked", [NESTED], indirect=True)
async def test_a_problem_without_a_field_of_its_own_is_shown(persons: Site, asked: str) -> None:
    await persons.sign_in("key-of-ann")
    typed = {"input:/lines": '[{"sku": "a"}]', "input:/place/city": "x", "input:/sure": "true"}

    wrong = await persons.post(f"approvals/{asked}/approve", **{**FORM, **typed})

    assert wrong.status_code == 422
    assert 'id="f-lines-wrong">0/sku: expected at least 3 characters' in wrong.text
    assert 'id="f-place-wrong">' in wrong.text
    assert "Nothing was decided: &#39;pay_on&#39; is a dependency of &#39;sure&#39;. Correct the marked" in wrong.text
    rejected = {**typed, "input:/lines": "", "decision": "rejected"}
    assert "You rejected approve" in (await persons.post(f"approvals/{asked}/approve", **rejected)).text


async def test_the_page_of_the_task_leads_to_the_decision(app: tasker.App, site: Site, asked: str) -> None:
    text = await site.text(f"tasks/{asked}", step="approve")
    assert f'href="/ui/approvals/{asked}/approve">Decide</a>' in text
    assert "waits for a person: 0 of 2 approved; may decide: ann, bob, approvals:finance; until" in text


async def test_a_server_without_authentication_asks_for_a_name(app: tasker.App, site: Site, asked: str) -> None:
    assert 'name="actor" required' in await site.text(f"approvals/{asked}/approve")
    assert "your name is missing" in (await site.post(f"approvals/{asked}/approve", **FORM)).text

    await site.post(f"approvals/{asked}/approve", **FORM, actor="bob")

    assert [vote.by for vote in (await app.approvals.get(asked, "approve")).votes] == ["bob"]


async def test_a_link_decides_once_and_only_by_post(
    app: tasker.App, closed: Site, asked: str, signer: LinkSigner
) -> None:
    link = (await app.approvals.link(asked, "approve", "ann")).url.removeprefix("/ui/")
    answer = await closed.get(link)
    await closed.get(link)
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "<nav" not in answer.text
    assert "4711" not in answer.text
    assert (await app.approvals.get(asked, "approve")).votes == [], "opening it decides nothing"

    token = conftest.TOKEN.search(answer.text)
    assert token
    first = await closed.client.post(f"/ui/{link}", data={"form_token": token[1], **FORM}, follow_redirects=True)
    second = await closed.client.post(f"/ui/{link}", data={"form_token": token[1], **FORM, "decision": "rejected"})

    assert "You approved this" in first.text
    assert (second.status_code, "You approved this" in second.text) == (409, True)
    (vote,) = (await app.approvals.get(asked, "approve")).votes
    assert (vote.by, vote.via, vote.decision) == ("ann", "link", "approved")
    rows = await app.operator_log.list(limit=2)
    assert {(row.actor, row.proof) for row in rows} == {("ann", "link")}
    assert not [row for row in rows if link in row.path], "whoever reads the log cannot decide"


@pytest.mark.parametrize("error", [DatabaseError("away"), ValueError("odd")])
async def test_what_was_typed_is_kept_when_a_decision_by_link_fails(
    *,
    app: tasker.App,
    closed: Site,
    asked: str,
    signer: LinkSigner,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    link = (await app.approvals.link(asked, "approve", "ann")).url.removeprefix("/ui/")
    opened = (await closed.get(link)).text
    assert 'name="secret" value="/code"' in opened
    monkeypatch.setattr(Approvals, "get", AsyncMock(side_effect=error))

    answer = await closed.post(link, **FORM, comment="a long one", secret="/code", **{"input:/code": "x-1"})

    assert answer.status_code == 500
    assert "Nothing that you typed is lost" in answer.text
    assert 'name="comment" value="a long one"' in answer.text
    assert 'name="input:/code" type="password"' in answer.text
    assert link.removeprefix("decide/") not in caplog.text, "whoever reads the log cannot decide"


async def test_a_link_that_was_changed_or_is_too_old_says_only_that(
    app: tasker.App, closed: Site, asked: str, signer: LinkSigner
) -> None:
    link = (await app.approvals.link(asked, "approve", "ann")).url.removeprefix("/ui/decide/")
    claims = signer.verified(link, datetime.now(UTC))
    changed = LinkSigner(("c" * 32,)).sign(replace(claims, subject="bob"))
    old = signer.sign(replace(claims, expires=int((datetime.now(UTC) - timedelta(seconds=1)).timestamp())))
    assert signer.verified(LinkSigner(("b" * 32,)).sign(claims), datetime.now(UTC)) == claims, "a former key"

    for text, message in ((changed, "this link is not valid"), (old, "this link expired"), ("x.y", "not valid")):
        answer = await closed.get(f"decide/{text}")
        assert (answer.status_code, message in answer.text, "Approve" in answer.text) == (404, True, False)
        assert (await closed.post(f"decide/{text}", **FORM)).status_code == 404
    assert (await app.approvals.get(asked, "approve")).votes == []


async def test_a_link_is_made_for_persons_who_may_decide(app: tasker.App, asked: str) -> None:
    with pytest.raises(tasker.errors.UsageError, match="signed links need a key"):
        await app.approvals.link(asked, "approve", "ann")

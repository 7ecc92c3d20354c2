"""Simulated approvals: votes in their order, quorum, rejection, timeout; mocks that make no sense are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.errors import UsageError
from tasker.simulation import mocks as mock
from tasker.simulation.mock_texts import read_mock, read_setting
from tasker.simulation.simulate import simulate
from tasker.template import compile_text
from tasker.template.plan import Plan

TEXT = """
name: expense
namespace: tests
version: 1.0.0
steps:
  - name: ask
    type: approval
    form: {type: object, required: [why], properties: {why: {type: string}}}
    quorum: 2
    timeout: 2d
  - {name: pay, handler: pay, dependencies: [ask], when: steps.ask.approved}
"""
WHY = {"why": "it is needed"}


def plan(*changes: tuple[str, str]) -> Plan:
    text = TEXT
    for old, new in changes:
        text = text.replace(old, new)
    return compile_text(text).plans[0]


def run(ask: Any, *changes: tuple[str, str]) -> Any:
    return simulate(plan(*changes), {}, mocks={"ask": ask, "pay": {}})


def test_votes_decide_when_they_come() -> None:
    outcome = run(mock.decided(by="ann", form=WHY, after="1h").then(mock.decided(by="bob", form=WHY, after="2h")))

    assert (outcome.status, outcome.route) == ("complete", ["ask", "pay"])
    assert outcome.results["ask"]["approved"] is True
    assert [vote["by"] for vote in outcome.results["ask"]["votes"]] == ["ann", "bob"]


def test_a_rejection_needs_no_form() -> None:
    assert run(mock.decided(False, by="ann")).route == ["ask"]


def test_a_rejection_may_fail_and_nobody_may_come() -> None:
    failed = run(mock.decided(False, by="ann", comment="no"), ("quorum: 2", "on_reject: fail"))
    assert failed.status == "error"
    assert run(mock.no_decision()).status == "error"
    late = mock.decided(by="ann", form=WHY).then(mock.decided(by="bob", form=WHY, after="2d"))
    assert run(late).status == "error"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (mock.decided(by="ann"), "does not fit its form"),
        (mock.event({}), "waits for a person"),
        ({"approved": True}, "waits for a person"),
        (mock.decided(by="ann", form=WHY).then(mock.decided(by="ann", form=WHY)), "two votes of 'ann'"),
    ],
)
def test_mocks_that_make_no_sense_are_refused(ask: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(ask)


def test_votes_are_for_approvals_alone() -> None:
    with pytest.raises(UsageError, match="does not wait for one"):
        simulate(plan(), {}, mocks={"ask": mock.no_decision(), "pay": mock.decided()})


def test_result_in_place_of_a_vote_is_refused_with_each_way_to_write_one() -> None:
    with pytest.raises(UsageError, match=r"--mock STEP=approved:ann.*\{approved: true, by: ann\}.*mock.decided"):
        simulate(plan(), {}, mocks={"ask": {"approved": True}, "pay": {}})


def test_misspelt_mock_of_the_command_line_is_answered_with_the_words() -> None:
    with pytest.raises(UsageError, match="'approve:ann' is neither a mock nor the JSON of a result") as refused:
        read_setting("ask=approve:ann")
    assert "did you mean `approved`" in (refused.value.hint or "")
    with pytest.raises(UsageError, match="expected STEP=MOCK") as refused:
        read_setting("ask")
    assert "no_decision" in (refused.value.hint or "")


@pytest.mark.parametrize("values", [{"approved": "rejected"}, {"by": 3}, {"by": ""}, {"form": ["x"]}, {"comment": 1}])
def test_vote_of_wrong_types_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(values))):
        mock.decided(**values)


def test_misspelt_kind_of_a_mock_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(UsageError) as refused:
        read_mock({"aproved": True, "by": "ann"}, "here")
    assert refused.value.hint == "did you mean `approved`?"


def test_votes_in_files_and_on_the_command_line_are_read() -> None:
    read = read_mock({"approved": False, "by": "ann", "form": WHY, "comment": "no", "after": "1h"}, "here")
    assert read == mock.decided(False, by="ann", form=WHY, comment="no", after="1h")
    assert read_mock({"no_decision": True}, "here") == mock.no_decision()
    assert read_setting("ask=rejected:bob") == ("ask", mock.decided(False, by="bob"))
    assert read_setting("ask=no_decision") == ("ask", mock.no_decision())
    with pytest.raises(UsageError, match="expected true or false"):
        read_mock({"approved": "yes"}, "here")
    with pytest.raises(UsageError, match="has no key 'takes'"):
        read_mock({"approved": True, "takes": "1h"}, "here")

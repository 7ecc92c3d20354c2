"""Keys that a template gives all of its steps."""

from __future__ import annotations

import pytest

from tasker.template.plan import RetryPolicy
from tests.unit.template.support import HEAD, codes, compiled, marked, place, plan_of


def template(defaults: str, *steps: str) -> str:
    lines = "\n".join(f"  - {{{step}}}" for step in steps or ("name: a, handler: h",))
    return f"{HEAD}defaults: {{{defaults}}}\nsteps:\n{lines}\n"


def test_defaults_are_those_of_every_step_that_does_not_write_the_key() -> None:
    plan = plan_of(
        template(
            "timeout_seconds: 30, on_worker_lost: fail, circuit_breaker: {failure_threshold: 2}",
            "name: a, handler: h",
            "name: b, handler: h, timeout_seconds: 5, on_worker_lost: retry",
        )
    )

    a, b = plan.steps
    assert (a.timeout_seconds, a.on_worker_lost) == (30, "fail")
    assert (b.timeout_seconds, b.on_worker_lost) == (5, "retry")
    assert a.circuit_breaker == b.circuit_breaker is not None


def test_keys_of_a_retry_block_are_taken_over_one_by_one() -> None:
    plan = plan_of(
        template(
            "retry: {max_attempts: 7, backoff_base_ms: 50, never_on: [404]}",
            "name: a, handler: h",
            "name: b, handler: h, retry: {max_attempts: 2}",
            "name: c, handler: h, retry: {profile: email}",
        )
    )

    a, b, c = (step.retry for step in plan.steps)
    assert a == RetryPolicy(max_attempts=7, backoff_base_ms=50, never_on=("404",))
    assert b == RetryPolicy(max_attempts=2, backoff_base_ms=50, never_on=("404",))
    assert (c.profile, c.never_on) == ("email", ())


def test_a_template_with_defaults_is_the_one_that_writes_them_on_each_step() -> None:
    written = f"{HEAD}steps:\n  - {{name: a, handler: h, timeout_seconds: 30}}\n"

    assert plan_of(template("timeout_seconds: 30")).hash == plan_of(written).hash


@pytest.mark.parametrize(
    ("defaults", "code"),
    [
        ("«tiemout_seconds»: 30", "T020"),
        ("timeout_seconds: «0»", "T024"),
        ("retry: {never_on: [«42»]}", "T064"),
        ("retry: {max_attempts: «0»}", "T080"),
        ("retry: {profile: «transiet»}", "T034"),
    ],
)
def test_a_problem_of_the_defaults_is_reported_once_and_where_it_is(defaults: str, code: str) -> None:
    text, where = marked(template(defaults, "name: a, handler: h", "name: b, handler: h"))

    result = compiled(text)

    assert codes(result) == [code]
    assert place(result.diagnostics[0]) == where

"""Workers and the database agree which steps may end together with the result above them."""

from __future__ import annotations

from tasker.template import compile_text
from tasker.template.condition_plans import has_gates
from tests.support.engine_fixture import Lab

STEPS = (
    "handler: h",
    "handler: h, effect: pure, retry: {max_attempts: 9}, execution: {mode: thread}, circuit_breaker: {}",
    "handler: h, requires: [gpu], slots: 2, publishes_events: [{name: a.b}], timeout_seconds: 3",
    "handler: h, delay: 5s",
    "handler: h, not_before: input.at",
    "handler: h, concurrency: {limit: 1}",
    "handler: h, rate_limit: {rate: 1/s}",
    "handler: h, on_failure: continue",
    "handler: h, optional: true",
    "handler: h, on_failure: skip_cascade",
    "handler: h, on_failure: compensate, compensate: {handler: u}",
    "handler: h, compensate: {handler: u}",
    "handler: h, when: 'true', on_failure: continue",
    "handler: h, when: 'true'",
    "type: wait, for: 3d",
)
TEMPLATES = ("", "concurrency: {limit: 1}\n", "priority: high\n", "on_failure: continue\n", "finally: [b]\n")


def test_gates_of_steps_are_known_to_workers(lab: Lab) -> None:
    found = []
    for number, (step, template) in enumerate([(s, "") for s in STEPS] + [(STEPS[0], t) for t in TEMPLATES]):
        depends = "" if "finally" in template else ", dependencies: [a]"
        text = f"name: gates{number}\nnamespace: x\nversion: 1.0.0\n{template}steps:\n- {{name: a, handler: h}}\n"
        result = compile_text(text + f"- {{name: b, {step}{depends}}}\n")
        assert result.plans, result.diagnostics
        (plan,) = result.plans
        lab.submit(plan, {"at": "2040-01-01T00:00:00Z"})
        rows = lab.observer.rows(
            "select ts.name, ts.gates <> 0 from tasker.template_steps ts join tasker.templates t using (template_id) "
            "where t.plan->>'name' = %s order by 1",
            plan.name,
        )
        found.append((step, template, rows, sorted((each.name, has_gates(plan, each)) for each in plan.steps)))
    assert [(step, template, ours) for step, template, _, ours in found] == [
        (step, template, [tuple(row) for row in rows]) for step, template, rows, _ in found
    ]

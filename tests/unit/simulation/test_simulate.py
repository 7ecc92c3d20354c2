"""A template runs without a database: on a virtual clock, with mocks, and with reasons for what ran and what not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tasker.errors import InputInvalid, UsageError
from tasker.template.compile import compile_text
from tasker.template.plan import Plan
from tasker.testing.simulation import assert_results, assert_route, assert_step, mock, simulate

START = datetime(2026, 3, 1, tzinfo=UTC)

ORDERS = """
name: orders
namespace: shop
version: 1.0.0
input_schema:
  type: object
  required: [amount]
  properties: {amount: {type: number}, gift: {type: boolean}}
steps:
  - {name: validate, handler: shop.validate}
  - name: charge
    dependencies: [validate]
    handler: shop.charge
    retry: {max_attempts: 3, backoff: fixed, backoff_base_ms: 1000}
    inputs: {amount: "${input.amount}"}
    result_schema: {type: object, required: [id], properties: {id: {type: integer}}}
  - name: wrap
    dependencies: [charge]
    when: has(input.gift) && input.gift
    handler: shop.wrap
  - name: route
    type: decision
    dependencies: [charge]
    rules:
      - {when: "input.amount > 1000", then: [review], because: large}
      - {else: [ship]}
  - {name: review, dependencies: [route], handler: shop.review}
  - {name: ship, dependencies: [route], handler: shop.ship, delay: 2h}
  - {name: close, type: deferred, dependencies: [review, ship, wrap], handler: tasker.collect}
"""


def plan_of(text: str) -> Plan:
    compiled = compile_text(text)
    assert compiled.ok, compiled.errors
    return compiled.plans[0]


def plan_with(*steps: str, head: str = "") -> Plan:
    lines = "\n".join(f"  - {step}" for step in steps)
    return plan_of(f"name: t\nnamespace: n\nversion: 1.0.0\n{head}\nsteps:\n{lines}\n")


@pytest.fixture(scope="module")
def orders() -> Plan:
    return plan_of(ORDERS)


PAID: dict[str, Any] = {"validate": {}, "charge": {"id": 7}, "ship": {"carrier": "DHL"}, "review": {}, "wrap": {}}


def test_a_run_takes_the_route_of_its_rules_and_conditions(orders: Plan) -> None:
    run = simulate(orders, {"amount": 10}, PAID)
    assert_route(run, "validate", "charge", "route", "ship", "close")
    assert run.status == "complete"
    assert run.why("review") == "rule 2 of route: no other rule applies"
    assert run.why("wrap") == "wrap: has(input.gift) && input.gift is false"
    large = simulate(orders, {"amount": 2000, "gift": True}, PAID)
    assert_route(large, "validate", "charge", "route", "wrap", "review", "close")
    assert large.why("review") == "rule 1 of route: large"


def test_time_is_that_of_retries_delays_and_mocks(orders: Plan) -> None:
    charge = mock.fails("network_error", times=2, takes=3).then(mock.result({"id": 7}, takes="500ms"))
    run = simulate(orders, {"amount": 10}, {**PAID, "charge": charge})
    assert_step(run, "charge", status="complete", attempts=3, result={"id": 7}, inputs={"amount": 10})
    assert [failure.retry_in_ms for failure in run.step("charge").failures] == [1000, 1000]
    assert run.step("charge").ended_ms == 3000 + 1000 + 3000 + 1000 + 500
    assert run.duration_ms == 8500 + 7200_000
    assert run.busy_ms == 6500
    assert [step.name for step in run.critical_path()] == ["validate", "charge", "route", "ship", "close"]


def test_a_permanent_failure_ends_the_task_and_says_what_never_ran(orders: Plan) -> None:
    declined = mock.fails("declined", retryable=False, code="CARD_BLOCKED")
    run = simulate(orders, {"amount": 10}, {**PAID, "charge": declined})
    assert run.status == "error"
    assert_step(run, "charge", status="error", attempts=1, error_type="declined", error_code="CARD_BLOCKED")
    assert run.why("ship") == "route has not decided: charge failed (declined)"


def test_a_step_that_would_call_a_handler_needs_a_mock(orders: Plan) -> None:
    with pytest.raises(UsageError, match="the step 'validate' of shop/orders has no mock"):
        simulate(orders, {"amount": 10})


@pytest.mark.parametrize(
    ("mocks", "message"),
    [
        ({"chrage": {}}, "shop/orders has no step 'chrage' to mock: did you mean `charge`"),
        ({"charge": {"id": "x"}}, "the mock of 'charge' does not fit its result_schema: \\$.id"),
        ({"charge": mock.route("ship")}, "takes a route, and the step is standard"),
        ({"charge": mock.batched(2)}, "cuts batches, and the step is standard"),
        ({"charge": 7}, "the mock of 'charge' has a result that is no object: expected keys and values, got 7"),
        ({"route": mock.route("shp")}, "takes a route to 'shp', which is no step: did you mean `ship`"),
    ],
)
def test_a_mock_that_does_not_fit_the_template_is_refused(orders: Plan, mocks: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(orders, {"amount": 10}, {**PAID, **mocks})


def test_an_incomplete_result_passes_where_only_what_is_present_is_checked(orders: Plan) -> None:
    run = simulate(orders, {"amount": 10}, {**PAID, "charge": {}}, strictness="none")
    assert run.status == "error"  # the engine would refuse it, too
    assert run.step("charge").error_type == "result_schema_violation"


def test_an_input_that_does_not_fit_is_refused(orders: Plan) -> None:
    with pytest.raises(InputInvalid, match=r"\$.amount: is required"):
        simulate(orders, {}, PAID)


def test_every_step_can_be_mocked_by_its_schema(orders: Plan) -> None:
    run = simulate(orders, {"amount": 10}, mock_all=True)
    assert_results(run, charge={"id": 1})
    assert run.status == "complete"


def test_the_deadline_of_the_task_ends_it() -> None:
    plan = plan_with(
        "{name: a, handler: h.a, timeout_seconds: 60}",
        "{name: b, dependencies: [a], handler: h.b}",
        head="deadline: 1m",
    )
    run = simulate(plan, {}, {"a": mock.result({}, takes="50s"), "b": mock.result({}, takes="20s")})
    assert (run.status, run.duration_ms) == ("error", 60_000)
    assert run.step("b").error_type == "deadline_exceeded"


def test_a_step_that_would_begin_after_the_deadline_fails_at_once() -> None:
    plan = plan_with("{name: a, handler: h.a, not_before: input.at}", head="deadline: 1m")
    run = simulate(plan, {"at": "2026-03-01T00:02:00Z"}, {"a": {}}, at=START)
    assert (run.status, run.duration_ms, run.step("a").error_type) == ("error", 0, "deadline_too_near")


def test_a_task_that_has_not_begun_expires() -> None:
    plan = plan_with("{name: a, handler: h.a, delay: 2m}", head="expires_in: 1m")
    run = simulate(plan, {}, {"a": {}})
    assert (run.status, run.duration_ms, run.route) == ("cancelled", 60_000, [])


def test_a_step_waits_for_the_time_in_the_input() -> None:
    plan = plan_with("{name: a, handler: h.a, not_before: input.at}")
    run = simulate(plan, {"at": "2026-03-01T01:00:00+00:30"}, {"a": {}}, at=START)
    assert run.step("a").started_ms == 30 * 60_000
    wrong = simulate(plan, {"at": "soon"}, {"a": {}}, at=START)
    assert (wrong.status, wrong.step("a").error_type) == ("error", "not_a_time")


def test_an_attempt_that_takes_too_long_times_out() -> None:
    plan = plan_with("{name: a, handler: h.a, timeout_seconds: 5, retry: {max_attempts: 1}}")
    run = simulate(plan, {}, {"a": mock.result({}, takes="6s")})
    assert (run.step("a").error_type, run.duration_ms) == ("handler_timeout", 5000)


def test_a_handler_that_asks_to_be_called_again_uses_no_attempt() -> None:
    plan = plan_with("{name: a, handler: h.a, retry: {max_attempts: 1}}")
    run = simulate(plan, {}, {"a": mock.again_in("10m").then(mock.again_in("10m")).then({"done": True})})
    assert_step(run, "a", attempts=1, result={"done": True})
    assert run.duration_ms == 20 * 60_000
    for_ever = simulate(plan, {}, {"a": mock.again_in("1s")})
    assert for_ever.step("a").error_type == "snoozed_too_often"


def test_a_lost_worker_is_retried_unless_the_step_forbids_it() -> None:
    plan = plan_with("{name: a, handler: h.a}", "{name: b, handler: h.b, on_worker_lost: fail}")
    run = simulate(plan, {}, {"a": mock.lost().then({}), "b": mock.lost().then({})})
    assert (run.step("a").state, run.step("b").error_type) == ("complete", "worker_lost")


def test_a_function_stands_for_a_handler_and_reads_its_context() -> None:
    plan = plan_with("{name: a, handler: h.a}", "{name: b, dependencies: [a], handler: h.b}")
    run = simulate(
        plan, {"n": 2}, {"a": {"n": 5}, "b": lambda context: {"sum": context.get_dependency_result("a")["n"]}}
    )
    assert_results(run, b={"sum": 5})


def test_a_list_calls_its_handler_for_each_item() -> None:
    plan = plan_with(
        "{name: work, for_each: input.items, handler: h.w, inputs: {sku: '${item.sku}'}}",
        "{name: sum, type: deferred, dependencies: [work], handler: tasker.collect}",
    )
    items = [{"sku": "a"}, {"sku": "b"}, {"sku": "c"}]
    run = simulate(plan, {"items": items}, {"work": lambda context: {"is": context.get_input("sku")}})
    assert run.results["sum"] == {"work": [{"is": "a"}, {"is": "b"}, {"is": "c"}]}
    one = simulate(plan, {"items": items}, {"work": {}, "work_002": mock.fails("broken", retryable=False)})
    assert (one.step("work_002").error_type, one.status) == ("broken", "error")
    assert simulate(plan, {"items": []}, {"work": {}}).status == "complete"


def test_slots_bound_what_runs_at_the_same_time() -> None:
    plan = plan_with(*(f"{{name: s{number}, handler: h}}" for number in range(4)))
    mocks = dict.fromkeys(["s0", "s1", "s2", "s3"], mock.result({}, takes=10))
    assert simulate(plan, {}, mocks).duration_ms == 10_000
    assert simulate(plan, {}, mocks, slots=2).duration_ms == 20_000


def test_an_expression_without_a_value_fails_the_step_as_in_the_engine() -> None:
    plan = plan_with(
        "{name: a, handler: h.a}", "{name: b, dependencies: [a], handler: h.b, inputs: {x: '${steps.a.x}'}}"
    )
    run = simulate(plan, {}, {"a": {}, "b": {}})
    assert run.step("b").error_type == "input_mapping_failed"


def test_real_handlers_run_for_steps_without_a_mock(tmp_path: Path) -> None:
    from tasker.simulation.simulate import real_handlers, workflow_of

    steps = "  - {name: a, handler: twice}\n  - {name: b, dependencies: [a], handler: absent}\n"
    (tmp_path / "workflow.yaml").write_text(f"name: t\nnamespace: n\nversion: 1.0.0\nsteps:\n{steps}")
    (tmp_path / "handlers.py").write_text(
        "from tasker.step_handler import step_handler\n\n"
        "@step_handler('twice')\ndef twice(context):\n    return {'n': 2 * context.get_input('n')}\n"
    )
    workflow = workflow_of(tmp_path)
    run = simulate(workflow.plan, {"n": 3}, {"b": {}}, handlers=real_handlers(workflow))
    assert_results(run, a={"n": 6})
    with pytest.raises(UsageError, match="the step 'b' has no handler"):
        simulate(workflow.plan, {"n": 3}, handlers=real_handlers(workflow))


def test_differences_are_shown_by_path(orders: Plan) -> None:
    run = simulate(orders, {"amount": 10}, PAID)
    with pytest.raises(AssertionError, match=r"charge\.result\.id: expected 8, was 7"):
        assert_step(run, "charge", result={"id": 8})
    with pytest.raises(AssertionError, match="review did not run: rule 2 of route"):
        assert_route(run, "validate", "charge", "route", "review", "close")


def test_a_wait_takes_its_time_and_no_slot() -> None:
    plan = plan_with(
        "{name: a, type: wait, for: 3d}", "{name: b, handler: h}", "{name: c, dependencies: [a], handler: h}"
    )
    run = simulate(plan, {}, {"b": mock.result({}, takes=10), "c": {}}, slots=1, at=START)
    assert (run.step("b").started_ms, run.step("c").started_ms) == (0, 3 * 86_400_000)
    assert run.results["a"] == {"waited_until": "2026-03-04T00:00:00+00:00"}


def test_a_wait_ends_at_the_next_named_day() -> None:
    plan = plan_with("{name: a, type: wait, until: {next: monday, at: '09:00', timezone: Europe/Berlin}}")
    run = simulate(plan, {}, at=START)  # a Sunday
    assert run.results["a"] == {"waited_until": "2026-03-02T08:00:00+00:00"}


def test_task_goes_on_after_a_failure_as_on_failure_says() -> None:
    plan = plan_with(
        "{name: a, handler: h, on_failure: continue}",
        "{name: b, dependencies: [a], handler: h}",
        "{name: c, handler: h, on_failure: skip_cascade}",
        "{name: d, dependencies: [c], handler: h}",
        "{name: e, handler: h, on_failure: {run: f}}",
        "{name: f, handler: h}",
        "{name: end, type: deferred, dependencies: [b, d, e, f], handler: h}",
    )
    gone = mock.fails("gone", retryable=False)
    seen: dict[str, Any] = {}

    def reads(context: Any) -> dict[str, Any]:
        seen.update(a=context.failed("a"), e=context.failure)
        return {}

    mocks = {"a": gone, "b": reads, "c": gone, "d": {}, "e": gone, "f": {}, "end": {}}
    run = simulate(plan, {}, mocks)
    assert (run.status, run.outcome) == ("complete", "partial")
    assert_route(run, "a", "c", "e", "b", "f", "end")
    assert run.why("d") == "it was skipped: a step above it failed, and `on_failure` skips what depends on it"
    assert (seen["a"].error_type, seen["e"]) == ("gone", None)
    fine = simulate(plan, {}, {**mocks, "a": {}, "c": {}, "e": {}, "b": {}})
    assert (fine.status, fine.outcome) == ("complete", None)
    assert fine.why("f") == "it runs only if e fails"


def test_an_event_comes_in_time_or_not_at_all() -> None:
    plan = plan_with(
        "{name: paid, type: wait_for_event, event: payment.settled, key: input.order, timeout: 2h, "
        "schema: {type: object, required: [amount]}}",
        "{name: ship, dependencies: [paid], handler: h}",
    )
    run = simulate(plan, {"order": "S-1"}, {"paid": mock.event({"amount": 12}, after="1h"), "ship": {}}, at=START)
    assert (run.status, run.duration_ms) == ("complete", 3_600_000)
    assert_results(run, paid={"key": "S-1", "payload": {"amount": 12}, "sent_at": "2026-03-01T01:00:00+00:00"})
    for late in (mock.event({"amount": 12}, after="3h"), mock.no_event()):
        run = simulate(plan, {"order": "S-1"}, {"paid": late, "ship": {}}, at=START)
        assert (run.status, run.step("paid").error_type, run.duration_ms) == ("error", "wait_timed_out", 7_200_000)
    with pytest.raises(UsageError, match=r"fits no schema of the wait for payment\.settled"):
        simulate(plan, {"order": "S-1"}, {"paid": mock.event({}), "ship": {}})
    with pytest.raises(UsageError, match="no mock says whether it comes"):
        simulate(plan, {"order": "S-1"}, {"ship": {}})
    assert simulate(plan, {"order": "S-1"}, {"paid": mock.event({"amount": 1})}, mock_all=True).status == "complete"


def test_several_events_are_collected() -> None:
    plan = plan_with("{name: bids, type: wait_for_event, event: bid, timeout: 1d, take: all}")
    bids = (
        mock.event({"n": 1}, after="1h").then(mock.event({"n": 2}, after="1h")).then(mock.event({"n": 3}, after="2d"))
    )
    run = simulate(plan, {}, {"bids": bids})
    assert [each["payload"]["n"] for each in run.results["bids"]["events"]] == [1, 2]
    assert run.duration_ms == 86_400_000


async def test_async_tests_simulate_async_handlers() -> None:
    plan = plan_with("{name: a, handler: tasker.transform, inputs: {x: 1}}")
    assert simulate(plan).results == {"a": {"x": 1}}

"""What good templates compile to."""

from __future__ import annotations

import pytest

from tasker.template.compile import compile_text
from tasker.template.plan import BatchSettings, HandlerRef, Plan, RetryPolicy, StepBreaker
from tasker.template.retry import RETRY_PROFILES
from tasker.template.step_types import StepType
from tests.unit.template.support import DATA, HEAD, codes, compiled, plan_of, step, steps, top

GOOD_FILES = sorted((DATA / "good").glob("*.yaml"))


def read(name: str, environment: str | None = None) -> Plan:
    return compile_text((DATA / "good" / f"{name}.yaml").read_text(), environment=environment).plans[0]


def static(plan: Plan) -> set[str]:
    return {s.name for s in plan.steps if s.static}


@pytest.mark.parametrize("file", GOOD_FILES, ids=lambda file: file.stem)
def test_good_files_have_no_errors(file) -> None:
    result = compile_text(file.read_text())
    assert result.ok
    assert set(codes(result)) <= {"T083", "T085"}


def test_of_the_batch_example_only_the_analysis_is_static() -> None:
    plan = read("csv_batch")
    assert static(plan) == {"analyze_csv"}
    assert [s.type for s in plan.steps] == [StepType.BATCHABLE, StepType.BATCH_WORKER, StepType.DEFERRED]


def test_of_the_approval_example_validation_and_decision_are_static() -> None:
    plan = read("approval")
    assert static(plan) == {"validate_request", "routing_decision"}
    assert plan.by_name["finalize_approval"].type is StepType.DEFERRED


def test_steps_behind_a_convergence_are_dynamic_and_allowed() -> None:
    plan = read("nested_approval")
    assert static(plan) == {"validate_request", "assess_risk", "primary_routing"}
    assert plan.steps[-1].name == "archive"
    assert plan.by_name["archive"].level == 7


def test_every_key_arrives_in_the_plan() -> None:
    plan = read("every_key")
    charge = plan.by_name["charge"]
    assert (plan.namespace, plan.name, plan.version) == ("reference", "every_key", "1.10")
    assert plan.metadata["created_at"] == "2024-01-31"
    assert plan.metadata["loaded_from"] == "generated/every_key.yaml"
    assert plan.system_dependencies == {"primary": "shop", "secondary": ["payment_gateway"]}
    assert plan.domain_events[0]["name"] == "order.charged"
    assert plan.identity_strategy == "caller_provided"
    assert plan.lifecycle["staleness_action"] == "dlq"
    assert charge.handler == HandlerRef(
        "payments.Charge", "charge", "explicit_mapping", {"gateway": "sandbox", "NO": "norway", "on": "yes"}
    )
    assert charge.retry == RetryPolicy(
        True,
        5,
        "fibonacci",
        100,
        5000,
        2.0,
        None,
        0.1,
        max_elapsed_ms=600_000,
        profile="external_api",
        never_on=("ValueError", "card_declined", "404", "sqlstate:23"),
    )
    assert plan.by_name["confirm"].retry.only_on == ("ConnectionError", "5xx")
    assert plan.by_name["split"].retry.increment_ms == 500
    assert plan.by_name["confirm"].retry.multiplier == 3.0
    assert (charge.timeout_seconds, charge.execution, charge.memory_mb, charge.on_worker_lost) == (
        30.0,
        "process",
        512,
        "fail",
    )
    assert charge.effect == "idempotent"
    assert plan.by_name["confirm"].memoize == {"key": {"input": ["order_id"]}, "ttl_seconds": 3600.0}
    assert charge.circuit_breaker == StepBreaker(3, 20.0, 1, "payment_gateway")
    assert plan.by_name["split"].circuit_breaker is None
    assert (charge.delay_seconds, plan.expires_in_seconds, plan.deadline_seconds) == (5400, 172_800, 432_000)
    assert plan.schedules == (
        {
            "name": "nightly",
            "spec": {
                "cron": "0 2 * * MON-FRI",
                "timezone": "Europe/Berlin",
                "dst_gap": "skip",
                "dst_overlap": "both",
                "missed_fire": "all",
                "overlap": "queue",
                "jitter_seconds": 600,
                "start": "2026-01-31T18:00:00+00:00",
                "end": "2036-01-31T18:00:00+00:00",
                "skip_dates": ["2026-12-24"],
                "context": {"kind": "audit"},
                "context_from": {"order_id": "fire_date"},
            },
        },
        {"name": "often", "spec": {"every_seconds": 900, "context_from": {"order_id": "schedule"}}},
    )
    assert plan.by_name["split"].not_before == {"step": "charge", "path": ["orders", "0", "ships_at"]}
    assert charge.lifecycle == {"max_steps_in_process_minutes": 15}
    assert charge.system_dependency == "payment_gateway"
    assert charge.publishes_events[0]["delivery_mode"] == "broadcast"
    assert charge.publishes_events[1] == {
        "name": "order.charge_failed",
        "condition": "permanent_failure",
        "delivery_mode": "durable",
        "schema": {"type": "object"},
    }
    assert charge.publishes_events[0]["schema"] == plan.domain_events[0]["schema"], "what the template says of it"
    assert charge.result_schema == {"type": "object", "properties": {"transaction_id": {"type": "string"}}}
    assert plan.by_name["ship_lines"].batch == BatchSettings(
        100, 5, "line_number", "ship_lines", "continue_on_failure", 10
    )


def test_an_environment_overrides_all_steps_and_then_single_ones() -> None:
    plan = read("every_key", "production")
    charge, confirm = plan.by_name["charge"], plan.by_name["confirm"]
    assert plan.environment == "production"
    assert (charge.timeout_seconds, confirm.timeout_seconds) == (20.0, 60.0)
    assert charge.retry == RetryPolicy(max_attempts=10)
    assert charge.handler.initialization == {"gateway": "live", "NO": "norway", "on": "yes", "log_level": "info"}
    assert confirm.handler.initialization == {"log_level": "info"}


def test_another_environment_changes_nothing_but_its_name() -> None:
    assert read("every_key", "test").steps == read("every_key").steps


def test_an_override_of_one_environment_is_checked_in_every_other() -> None:
    text = top("environments: {x: {steps: [{name: a, retry: {profile: nope}}]}}")
    assert codes(compiled(text)) == codes(compiled(text, "y")) == ["T034"]


def test_older_spellings_mean_the_same() -> None:
    first, second = read("older_spellings").steps
    assert first.retry == RetryPolicy(max_attempts=4, backoff_base_ms=500, max_backoff_ms=20_000)
    assert second.retry == RetryPolicy(max_attempts=2, multiplier=1.5)
    assert second.lifecycle == {}
    assert read("older_spellings").metadata == {
        "task_handler": {"callable": "legacy.TaskHandler", "initialization": {"debug": True}}
    }


def test_a_file_holds_several_templates() -> None:
    result = compile_text((DATA / "good" / "older_spellings.yaml").read_text())
    assert [plan.version for plan in result.plans] == ["1.0.0", "2024.10"]


def test_a_broken_document_leaves_the_others_usable() -> None:
    result = compiled(step("") + "---\n" + step("").replace("handler: h", "handler: 5").replace("flow", "other"))
    assert [plan.name for plan in result.plans] == ["flow"]
    assert codes(result) == ["T022"]


@pytest.mark.parametrize(
    "version", ["1.0", "1.10", "1", "1.0.0", '"2.0"', "2024-01-31", "1e3", "1.0.0+build.5", "1.0.0-rc.1+5"]
)
def test_a_version_is_kept_as_it_is_written(version: str) -> None:
    assert plan_of(step("").replace("1.0.0", version)).version == version.strip('"')


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[(word, word) for word in ("no", "yes", "on", "off", "No", "y", "012:30:45", "1_000", "0b1", "2024-01-31")],
        *[("017", 17), ("0o17", 15), ("0x1F", 31), ("+5", 5), ("-0", 0), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0)],
        *[("true", True), ("FALSE", False), ("~", None), ("Null", None), ("''", ""), ("'5'", "5")],
        *[("!!str 5", "5"), ("!!float 5", 5.0), ('!!int "5"', 5), ("!!null ''", None), ("!!bool true", True)],
    ],
)
def test_scalars_follow_yaml_1_2(written: str, value: object) -> None:
    found = plan_of(top(f"metadata: {{a: {written}}}")).metadata["a"]
    assert (found, type(found)) == (value, type(value))


def test_merge_keys_fill_in_what_is_not_written() -> None:
    plan = plan_of(
        steps(
            """
            - &first {name: a, handler: h, timeout_seconds: 5}
            - {<<: *first, name: b}
            - {<<: [{timeout_seconds: 7}, *first], name: c}
            """
        )
    )
    assert [s.timeout_seconds for s in plan.steps] == [5.0, 5.0, 7.0]


def test_an_optional_key_without_a_value_is_left_out() -> None:
    plan = plan_of(step("dependencies:\nretry: null\ntimeout_seconds:\ndescription: ~\nresult_schema:\nbatch_config:"))
    assert plan == plan_of(step(""))


def test_a_bare_handler_is_its_callable() -> None:
    assert plan_of(step("")).steps[0].handler == HandlerRef("h")


def test_a_decision_runs_once_unless_a_retry_block_says_otherwise() -> None:
    branch = "- {name: b, handler: h, dependencies: [a]}"
    once = plan_of(steps("- {name: a, handler: h, type: decision}\n" + branch))
    often = plan_of(steps("- {name: a, handler: h, type: decision, retry: {backoff: fixed}}\n" + branch))
    assert once.by_name["a"].retry == RetryPolicy(max_attempts=1)
    assert often.by_name["a"].retry == RetryPolicy(max_attempts=3, backoff="fixed")


@pytest.mark.parametrize("name", RETRY_PROFILES)
def test_a_profile_gives_the_policy_and_written_keys_win(name: str) -> None:
    plain = plan_of(step(f"retry: {{profile: {name}}}")).steps[0].retry
    changed = plan_of(step(f"retry: {{profile: {name}, retryable: true, max_attempts: 7}}")).steps[0].retry
    assert plain == RETRY_PROFILES[name]
    assert (changed.max_attempts, changed.backoff_base_ms) == (7, plain.backoff_base_ms)


@pytest.mark.parametrize(("written", "share"), [("true", 0.15), ("false", 0.0), ("0.3", 0.3), ("1", 1.0)])
def test_jitter_is_a_share_or_a_switch(written: str, share: float) -> None:
    assert plan_of(step(f"retry: {{jitter: {written}}}")).steps[0].retry.jitter == share


def test_a_step_that_is_not_retryable_has_one_attempt() -> None:
    assert plan_of(step("retry: {retryable: false}")).steps[0].retry.max_attempts == 1


def test_zero_attempts_stay_written_as_they_are() -> None:
    assert plan_of(step("retry: {max_attempts: 0}")).steps[0].retry.max_attempts == 0


def test_a_batch_worker_takes_the_advice_of_its_batchable_step() -> None:
    text = """
        - {name: cut, handler: h, type: batchable, batch_config: {cursor_field: row, failure_strategy: isolate_failed}}
        - {name: work, handler: h, type: batch_worker, dependencies: [cut]}
        """
    plan = plan_of(steps(text))
    assert plan.by_name["work"].batch == BatchSettings(cursor_field="row", failure_strategy="isolate")


def test_a_batch_worker_always_has_batch_settings() -> None:
    assert read("csv_batch").by_name["process_csv_batch"].batch == BatchSettings()


def test_all_problems_are_reported_at_once() -> None:
    text = HEAD + (
        "descripton: x\n"
        "steps:\n"
        "  - {name: a, handler: 5, dependencies: [b, x]}\n"
        "  - {name: b, handler: h, dependencies: [a], type: magic}\n"
        "  - {handler: h}\n"
    )
    assert codes(compiled(text)) == ["T020", "T022", "T041", "T040", "T023", "T021"]


def test_a_misspelt_dependency_causes_no_second_message() -> None:
    text = """
        - {name: cut, handler: h, type: batchable}
        - {name: work, handler: h, type: batch_worker, dependencies: [cutt]}
        - {name: sum, handler: h, type: deferred, dependencies: [wrk]}
        """
    assert codes(compiled(steps(text))) == ["T040", "T040"]


def test_each_cycle_is_printed_as_its_own_path() -> None:
    text = """
        - {name: a, handler: h, dependencies: [b]}
        - {name: b, handler: h, dependencies: [a]}
        - {name: c, handler: h, dependencies: [e, a]}
        - {name: d, handler: h, dependencies: [c]}
        - {name: e, handler: h, dependencies: [d]}
        - {name: below, handler: h, dependencies: [e]}
        """
    messages = [d.message for d in compiled(steps(text)).diagnostics]
    assert messages == [
        "the dependencies form a cycle: a -> b -> a",
        "the dependencies form a cycle: c -> d -> e -> c",
    ]


@pytest.mark.parametrize(("written", "jitter"), [("none", 0.0), ("full", "full"), ("true", 0.15), ("0.3", 0.3)])
def test_a_jitter_is_a_word_or_a_share_and_survives_being_stored(written: str, jitter: float | str) -> None:
    plan = plan_of(step(f"retry: {{jitter: {written}}}"))
    assert plan.steps[0].retry.jitter == jitter
    assert Plan.from_json(plan.to_json()) == plan


CONDITIONAL = """
- {name: quote, handler: h}
- {name: pay, handler: h, dependencies: [quote], when: input.amount > 0}
- {name: work, handler: h, dependencies: [quote], when: input.amount > 1, for_each: input.items}
- {name: end, type: deferred, handler: h, dependencies: [pay, work]}
"""


def test_convergence_of_a_conditional_step_waits_for_its_condition() -> None:
    plan = plan_of(steps(CONDITIONAL))
    assert {step.name: step.depends_on for step in plan.steps} == {
        "quote": (),
        "pay.when": ("quote",),
        "pay": ("pay.when",),
        "work.when": ("quote",),
        "work.each": ("work.when",),
        "work": ("work.each",),
        "end": ("pay", "work", "pay.when", "work.when"),
    }
    assert plan.entries == {"pay": "pay.when", "work": "work.when"}


def test_lost_worker_of_a_condition_costs_an_attempt_and_not_the_step() -> None:
    plan = plan_of(steps(CONDITIONAL) + "defaults: {on_worker_lost: fail, retry: {max_attempts: 1}}\n")
    condition, step = plan.by_name["pay.when"], plan.by_name["pay"]
    assert (condition.on_worker_lost, condition.retry.max_attempts) == ("retry", 3)
    assert (step.on_worker_lost, step.retry.max_attempts) == ("fail", 1)

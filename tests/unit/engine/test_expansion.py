"""What completing a decision or batchable step creates, and which outcomes create nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.engine.expansion.choices import ExpansionLimits
from tasker.engine.expansion.graph import ExistingStep, Expansion
from tasker.engine.expansion.outcomes import OutcomeError, OutcomeProblem
from tasker.engine.expansion.planner import expand, expand_resolved
from tasker.settings.execution import BatchProcessing, DecisionPoints
from tasker.template.plan import BatchSettings
from tests.support.random_plans import (
    BATCHABLE,
    DECISION,
    DEFERRED,
    WORKER,
    Spec,
    build_plan,
    create_batches,
    create_steps,
)
from tests.unit.engine.convergence_cases import APPROVAL, BRANCH, CASES, CSV, NESTED, UNLISTED, Case

ALONE = DecisionPoints.for_single_process()
THREE = ExpansionLimits(ALONE.replace(max_decision_depth=3, warn_threshold_depth=2))


def created(expansion: Expansion) -> dict[str, tuple[str, ...]]:
    return {step.name: step.parents for step in expansion.steps}


def step(name: str, *, open: bool = True, of: str | None = None) -> ExistingStep:
    return ExistingStep(name, of or name, open)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.why)
def test_the_truth_table_of_deferred_convergence(case: Case) -> None:
    expansion = expand(case.plan, case.parent, case.outcome, case.existing, THREE)
    assert created(expansion) == case.created
    assert len(expansion.warnings) == len(case.warnings)
    assert all(words in warning for words, warning in zip(case.warnings, expansion.warnings, strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.why)
def test_a_second_delivery_of_the_same_result_creates_nothing(case: Case) -> None:
    first = expand(case.plan, case.parent, case.outcome, case.existing)
    after = [*case.existing, *(ExistingStep(new.name, new.template_step, True) for new in first.steps)]
    assert expand(case.plan, case.parent, case.outcome, after).steps == ()


# Decisions.


def test_the_steps_of_the_three_nested_scenarios_are_counted_as_published() -> None:
    plan = build_plan(
        Spec("validate"),
        Spec("assess", depends_on=("validate",)),
        Spec("primary", DECISION, ("assess",)),
        Spec("emergency", depends_on=("primary",)),
        Spec("standard", depends_on=("primary",)),
        Spec("senior", depends_on=("primary",)),
        Spec("compliance", DECISION, ("primary", "senior")),
        Spec("legal", depends_on=("compliance",)),
        Spec("fraud", depends_on=("compliance",)),
        Spec("jurisdiction", depends_on=("compliance",)),
        Spec(
            "finalize",
            DEFERRED,
            (
                "primary",
                "emergency",
                "standard",
                "senior",
                "compliance",
                "legal",
                "fraud",
                "jurisdiction",
            ),
        ),
    )
    started = [step("validate", open=False), step("assess", open=False), step("primary")]
    assert len(started) + len(expand(plan, "primary", create_steps("emergency"), started).steps) == 5
    assert len(started) + len(expand(plan, "primary", create_steps("standard"), started).steps) == 5
    first = expand(plan, "primary", create_steps("senior", "compliance"), started).steps
    existing = [*started[:2], step("primary", open=False), *(step(new.name) for new in first)]
    second = expand(plan, "compliance", create_steps("legal", "fraud", "jurisdiction"), existing).steps
    assert len(existing) + len(second) == 9


def test_a_repeated_name_creates_one_step() -> None:
    result = {"decision_point_outcome": {"type": "create_steps", "step_names": ["auto", "auto"]}}
    assert list(created(expand(UNLISTED, "route", result, [step("route")]))) == ["auto", "finalize"]


def test_a_branch_also_waits_for_the_other_dependencies_that_exist() -> None:
    plan = build_plan(
        Spec("load"),
        Spec("route", DECISION),
        Spec("a", depends_on=("route",)),
        Spec("b", depends_on=("route", "load", "a")),
    )
    existing = [step("load"), step("route")]
    assert created(expand(plan, "route", create_steps("b"), existing)) == {"b": ("route", "load")}
    assert created(expand(plan, "route", create_steps("a", "b"), existing))["b"] == ("route", "load", "a")


def test_a_chosen_step_waits_for_the_decision_even_when_it_does_not_list_it() -> None:
    plan = build_plan(Spec("route", DECISION), Spec("a", depends_on=("route",)), Spec("b", depends_on=("a",)))
    assert created(expand(plan, "route", create_steps("b"), [step("route")])) == {"b": ("route",)}


def test_what_follows_a_branch_is_created_with_it() -> None:
    plan = build_plan(
        Spec("route", DECISION),
        Spec("a", depends_on=("route",)),
        Spec("a2", depends_on=("a",)),
        Spec("b", depends_on=("route",)),
        Spec("b2", depends_on=("b",)),
    )
    assert created(expand(plan, "route", create_steps("a"), [step("route")])) == {"a": ("route",), "a2": ("a",)}


def test_a_name_that_exists_changes_nothing_and_is_said() -> None:
    expansion = expand(UNLISTED, "route", create_steps("auto"), [step("route"), step("auto")])
    assert created(expansion) == {"finalize": ("auto",)}
    assert expansion.warnings == ("'route' names 'auto', which exists already; nothing changes",)


def test_naming_a_convergence_is_tolerated_and_said() -> None:
    expansion = expand(APPROVAL, "route", create_steps("auto", "finalize"), [step("validate"), step("route")])
    assert created(expansion)["finalize"] == ("route", "auto")
    assert "creates it automatically" in expansion.warnings[0]


def refused(plan, parent: str, result: Any, existing=None, limits: ExpansionLimits | None = None) -> OutcomeError:
    with pytest.raises(OutcomeError) as error:
        expand(plan, parent, result, existing or [step(parent)], limits or ExpansionLimits())
    assert not error.value.retryable
    return error.value


def test_an_unknown_step_is_refused_with_the_nearest_candidate() -> None:
    error = refused(APPROVAL, "route", create_steps("auto", "manger"))
    assert error.problem == OutcomeProblem.UNKNOWN_STEP
    assert error.message == "'route' names the step 'manger', which the template does not have"
    assert error.hint == "did you mean 'manager'?"


def test_an_unknown_step_far_from_any_candidate_is_told_them_all() -> None:
    assert refused(APPROVAL, "route", create_steps("zzz")).hint == "expected one of: auto, manager, finance"


def test_a_batch_worker_cannot_be_chosen() -> None:
    error = refused(BRANCH, "route", create_steps("process"))
    assert error.problem == OutcomeProblem.NOT_CREATABLE
    assert "only its batchable step creates it" in error.message
    assert error.hint == "'route' may name: quick, analyze"


def test_a_step_that_is_not_below_the_decision_cannot_be_chosen() -> None:
    error = refused(NESTED, "compliance", create_steps("simple"), [step("route", open=False), step("compliance")])
    assert error.problem == OutcomeProblem.NOT_CREATABLE
    assert error.message == "'compliance' names 'simple', which is not below it in the template"


def chain(length: int):
    specs = [Spec("d1", DECISION)]
    specs += [Spec(f"d{n}", DECISION, (f"d{n - 1}",)) for n in range(2, length + 1)]
    return build_plan(*specs, Spec("leaf", depends_on=(f"d{length}",)))


def test_so_many_decisions_may_follow_each_other_and_the_next_is_refused() -> None:
    for depth, warnings in ((1, 0), (2, 1), (3, 1)):
        existing = [*(step(f"d{n}", open=False) for n in range(1, depth)), step(f"d{depth}")]
        assert len(expand(chain(depth), f"d{depth}", create_steps("leaf"), existing, THREE).warnings) == warnings
    existing = [*(step(f"d{n}", open=False) for n in range(1, 4)), step("d4")]
    error = refused(chain(4), "d4", create_steps("leaf"), existing, THREE)
    assert error.problem == OutcomeProblem.TOO_DEEP
    assert error.message == "'d4' is decision number 4 on its way; the limit is 3"
    four = ExpansionLimits(ALONE.replace(max_decision_depth=4))
    assert expand(chain(4), "d4", create_steps("leaf"), existing, four).steps


def test_a_decision_that_was_not_taken_does_not_count_as_depth() -> None:
    plan = build_plan(
        Spec("d1", DECISION),
        Spec("d2", DECISION, ("d1",)),
        Spec("x", depends_on=("d2",)),
        Spec("y", depends_on=("d1",)),
        Spec("join", DEFERRED, ("d1", "x", "y")),
        Spec("d3", DECISION, ("join",)),
        Spec("z", depends_on=("d3",)),
    )
    existing = [step("d1", open=False), step("y", open=False), step("join", open=False), step("d3")]
    assert expand(
        plan,
        "d3",
        create_steps("z"),
        existing,
        ExpansionLimits(ALONE.replace(max_decision_depth=2)),
    ).steps


def test_a_decision_may_create_so_many_steps_and_no_more() -> None:
    plan = build_plan(Spec("d", DECISION), *(Spec(f"s{n}", depends_on=("d",)) for n in range(5)))
    names = [f"s{n}" for n in range(5)]
    limits = ExpansionLimits(ALONE.replace(max_steps_per_decision=4, warn_threshold_steps=3))
    assert refused(plan, "d", create_steps(*names), limits=limits).problem == OutcomeProblem.TOO_MANY_STEPS
    expansion = expand(plan, "d", create_steps(*names[:3]), [step("d")], limits)
    assert expansion.warnings == ("'d' names 3 steps; the limit is 4",)


def test_disabled_decisions_count_as_no_branches() -> None:
    limits = ExpansionLimits(ALONE.replace(enabled=False))
    expansion = expand(APPROVAL, "route", create_steps("auto"), [step("validate", open=False), step("route")], limits)
    assert created(expansion) == {"finalize": ("route",), "notify": ("finalize",)}
    assert expansion.warnings == ("decisions are disabled: 'route' counts as no_branches",)


@pytest.mark.parametrize("result", [None, {}, {"decision_point_outcome": {"type": "create_steps", "step_names": []}}])
def test_a_decision_without_a_usable_outcome_is_refused(result: Any) -> None:
    assert refused(APPROVAL, "route", result).error_type == "invalid_outcome"


def test_a_decision_in_error_keeps_the_convergence_back() -> None:
    plan = build_plan(
        Spec("left", DECISION),
        Spec("right", DECISION),
        Spec("a", depends_on=("left",)),
        Spec("b", depends_on=("right",)),
        Spec("join", DEFERRED, ("left", "right", "a", "b")),
    )
    in_error = step("left", open=True)
    assert created(expand(plan, "right", create_steps("b"), [in_error, step("right")])) == {"b": ("right",)}


# Batches.


def test_workers_get_their_cursors_and_the_settings_of_their_template_step() -> None:
    settings = BatchSettings(cursor_field="row", checkpoint_interval=50)
    plan = build_plan(Spec("analyze", BATCHABLE), Spec("process", WORKER, ("analyze",), batch=settings))
    new = expand(plan, "analyze", create_batches("process", 2), [step("analyze")]).steps
    assert [worker.inputs for worker in new] == [
        {
            "cursor": {"batch_id": batch, "start_cursor": start, "end_cursor": start + 10, "batch_size": 10},
            "batch_metadata": {"checkpoint_interval": 50, "cursor_field": "row", "failure_strategy": "fail_fast"},
            "is_no_op": False,
        }
        for batch, start in (("001", 0), ("002", 10))
    ]


def test_no_batches_make_one_placeholder_that_does_nothing() -> None:
    placeholder = expand(CSV, "analyze", create_batches("process", 0), [step("analyze")]).steps[0]
    assert placeholder.name == "process_001"
    assert placeholder.inputs is not None
    assert placeholder.inputs["is_no_op"] is True
    assert placeholder.inputs["cursor"] == {"batch_id": "001", "start_cursor": 0, "end_cursor": 0, "batch_size": 0}


def test_more_than_999_workers_are_waited_for_in_numeric_order() -> None:
    new = expand(CSV, "analyze", create_batches("process", 1001), [step("analyze")]).steps
    convergence = next(created for created in new if created.name == "aggregate")
    assert convergence.parents[0] == "process_001"
    assert convergence.parents[-3:] == ("process_999", "process_1000", "process_1001")


def test_existing_workers_are_waited_for_in_numeric_order_whatever_the_order_they_are_given_in() -> None:
    plan = build_plan(
        Spec("analyze", BATCHABLE),
        Spec("process", WORKER, ("analyze",)),
        Spec("route", DECISION),
        Spec("join", DEFERRED, ("route", "process")),
    )
    workers = [step(f"process_{n:03}", of="process") for n in (1000, 2, 999, 1)]
    join = expand(plan, "route", create_steps(), [step("route"), step("analyze", open=False), *workers]).steps[0]
    assert join.parents == ("route", "process_001", "process_002", "process_999", "process_1000")


def test_workers_also_wait_for_the_other_dependencies_of_their_template_step() -> None:
    plan = build_plan(Spec("rates"), Spec("analyze", BATCHABLE), Spec("process", WORKER, ("analyze", "rates")))
    new = expand(plan, "analyze", create_batches("process", 1), [step("rates"), step("analyze")])
    assert created(new) == {"process_001": ("analyze", "rates")}


def test_a_batch_without_a_convergence_ends_after_its_workers() -> None:
    plan = build_plan(Spec("analyze", BATCHABLE), Spec("process", WORKER, ("analyze",)))
    assert len(expand(plan, "analyze", create_batches("process", 2), [step("analyze")]).steps) == 2


def test_every_convergence_of_the_workers_is_created() -> None:
    plan = build_plan(
        Spec("analyze", BATCHABLE),
        Spec("process", WORKER, ("analyze",)),
        Spec("sum", DEFERRED, ("process",)),
        Spec("check", DEFERRED, ("process", "analyze")),
    )
    new = created(expand(plan, "analyze", create_batches("process", 1), [step("analyze")]))
    assert new["sum"] == ("process_001",)
    assert new["check"] == ("process_001", "analyze")


def test_the_outcome_chooses_among_several_worker_steps() -> None:
    plan = build_plan(
        Spec("analyze", BATCHABLE), Spec("small", WORKER, ("analyze",)), Spec("large", WORKER, ("analyze",))
    )
    assert list(created(expand(plan, "analyze", create_batches("large", 1), [step("analyze")]))) == ["large_001"]
    placeholder = expand(plan, "analyze", create_batches("large", 0), [step("analyze")])
    assert list(created(placeholder)) == ["small_001"]
    assert "several batch_worker steps" in placeholder.warnings[0]


def test_an_unknown_worker_step_is_refused() -> None:
    error = refused(CSV, "analyze", create_batches("proces", 1))
    assert error.problem == OutcomeProblem.UNKNOWN_STEP
    assert error.hint == "did you mean 'process'?"
    assert refused(CSV, "analyze", create_batches("report", 1)).problem == OutcomeProblem.NOT_CREATABLE


def test_a_step_may_cut_so_many_batches_and_no_more() -> None:
    limits = ExpansionLimits(batches=BatchProcessing(max_batches_per_step=2))
    assert len(created(expand(CSV, "analyze", create_batches("process", 2), [step("analyze")], limits))) == 4

    error = refused(CSV, "analyze", create_batches("process", 3), limits=limits)

    assert (error.problem, error.error_type) == (OutcomeProblem.TOO_MANY_STEPS, "invalid_outcome")
    assert error.message == "'analyze' cuts 3 batches, at most 2 are allowed"
    assert "orchestration.batch_processing.max_batches_per_step" in (error.hint or "")


def test_disabled_batch_processing_refuses_batchable_steps() -> None:
    limits = ExpansionLimits(batches=BatchProcessing(enabled=False))
    error = refused(CSV, "analyze", create_batches("process", 1), limits=limits)
    assert error.problem == OutcomeProblem.DISABLED


def test_suspicious_ranges_are_created_with_a_warning() -> None:
    result = create_batches("process", 2)
    result["batch_processing_outcome"]["total_items"] = 21
    expansion = expand(CSV, "analyze", result, [step("analyze")])
    assert len(expansion.steps) == 4
    assert expansion.warnings == ("the batch sizes add up to 20, total_items is 21",)


# Steps that a person settled, and steps that decide nothing.


def test_a_decision_that_a_person_resolved_has_no_branches() -> None:
    assert created(expand_resolved(UNLISTED, "route", [step("route")])) == {"finalize": ("route",)}


def test_a_batchable_step_that_a_person_resolved_has_a_placeholder() -> None:
    assert list(created(expand_resolved(CSV, "analyze", [step("analyze")]))) == ["process_001", "aggregate", "report"]


def test_an_outcome_in_the_result_of_any_other_step_is_ignored_and_said() -> None:
    expansion = expand(APPROVAL, "validate", create_steps("auto"), [step("validate"), step("route")])
    assert expansion.steps == ()
    assert "'decision_point_outcome', which is ignored: its type is standard" in expansion.warnings[0]
    assert expand(APPROVAL, "validate", {"ok": True}, [step("validate")]) == Expansion()
    assert expand_resolved(APPROVAL, "validate", [step("validate")]) == Expansion()


# Branches that were not taken.


def test_the_convergence_inside_an_untaken_branch_is_not_created() -> None:
    plan = build_plan(
        Spec("outer", DECISION),
        Spec("inner", DECISION, ("outer",)),
        Spec("x", depends_on=("inner",)),
        Spec("y", depends_on=("inner",)),
        Spec("join", DEFERRED, ("x", "y")),
        Spec("other", depends_on=("outer",)),
        Spec("end", DEFERRED, ("outer", "join", "other")),
    )
    new = created(expand(plan, "outer", create_steps("other"), [step("outer")]))
    assert new == {"other": ("outer",), "end": ("outer", "other")}


def test_a_convergence_of_several_untaken_branches_is_still_the_convergence_of_the_decision() -> None:
    plan = build_plan(
        Spec("outer", DECISION),
        Spec("left", DECISION, ("outer",)),
        Spec("right", DECISION, ("outer",)),
        Spec("x", depends_on=("left",)),
        Spec("y", depends_on=("right",)),
        Spec("join_left", DEFERRED, ("x",)),
        Spec("join_right", DEFERRED, ("y",)),
        Spec("end", DEFERRED, ("join_left", "join_right")),
    )
    assert created(expand(plan, "outer", create_steps(), [step("outer")])) == {"end": ("outer",)}

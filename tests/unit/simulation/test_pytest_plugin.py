"""Users test workflows: scenario files are tests, `tasker_sim` simulates, coverage of graphs is shown and required."""

from __future__ import annotations

import pytest

from tasker.services.workflows.files import find_templates

pytest_plugins = ["pytester"]

WORKFLOW = """
name: orders
namespace: shop
version: 1.0.0
steps:
  - {name: validate, handler: shop.validate}
  - {name: charge, dependencies: [validate], handler: shop.charge, retry: {max_attempts: 3}}
  - name: route
    type: decision
    dependencies: [charge]
    rules: [{when: input.amount > 1000, then: [review]}, {else: [ship]}]
  - {name: review, dependencies: [route], handler: shop.review}
  - {name: ship, dependencies: [route], handler: shop.ship}
"""
SCENARIO = """
template: workflow.yaml
mocks: {validate: {result: {ok: true}}, ship: {result: {carrier: DHL}}, review: {result: {}}}
cases:
  - name: two timeouts, then paid
    input: {amount: 120}
    mocks: {charge: [{fails: timeout}, {fails: timeout}, {result: {id: 7}, takes: 2s}]}
    expect:
      status: complete
      route: [validate, charge, route, ship]
      attempts: {charge: 3}
      results: {ship: {carrier: DHL}}
      duration: "< 10s"
  - name: a large order is reviewed
    input: {amount: 5000}
    mocks: {charge: {result: {}}}
    expect: {route: [validate, charge, route, review]}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.path.joinpath("workflow.yaml").write_text(WORKFLOW)
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", *arguments)


def test_the_cases_of_a_scenario_file_are_tests(project: pytest.Pytester) -> None:
    project.path.joinpath("orders.scenario.yaml").write_text(SCENARIO)
    result = run(project, "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["orders.scenario.yaml::two timeouts, then paid PASSED*"])


def test_failed_case_shows_the_difference_and_the_reason(project: pytest.Pytester) -> None:
    text = SCENARIO.replace("amount: 5000", "amount: 500").replace(
        "carrier: DHL}}\n      dur", "carrier: UPS}}\n      dur"
    )
    project.path.joinpath("orders.scenario.yaml").write_text(text)
    result = run(project)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "result of ship.carrier: expected 'UPS', was 'DHL'",
            "route: expected validate > charge > route > review",
            "*was validate > charge > route > ship",
            "*review did not run: rule 2 of route: no other rule applies",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("expect:", "expects:"), "*cases?0?: unknown key 'expects'*"),
        (("fails: timeout}, {f", "fail: timeout}, {f"), "*cases?0?: mocks.charge?0?: expected one of {result: ...}*"),
        (("{charge: {result: {}}}", "{chrage: {result: {}}}"), "*has no step 'chrage' to mock*"),
        (("cases:", "case:"), "*unknown key 'case'*"),
        (("takes: 2s", "takes: soon"), "*cases?0?: mocks.charge?2?.takes: expected a number of seconds or a duration*"),
        (("takes: 2s", "takes: [2]"), "*mocks.charge?2?.takes: expected a number of seconds or a duration*"),
        (
            ("fails: timeout}", "fails: timeout, times: two}"),
            "*charge?0?.times: expected a whole number above 0*",
        ),
        (("fails: timeout}", "fails: timeout, retryable: 'no'}"), "*charge?0?.retryable: expected true or false*"),
        (("fails: timeout}", "fails: timeout, message: 3}"), "*charge?0?.message: expected a text, found 3*"),
        (("< 10s", "10 parsecs"), "*cases?0?: expect.duration: expected a duration such as 5m*"),
        (("{charge: 3}", "3"), "*cases?0?: expect.attempts: expected keys and values, found 3*"),
        (
            ("[validate, charge, route, ship]", "ship"),
            "*expect.route: expected a list of steps, found 'ship'*",
        ),
        (
            ("complete", "completed"),
            "*cases?0?: expect.status: expected complete or error or cancelled, found 'completed'*",
        ),
    ],
)
def test_a_mistake_in_a_scenario_file_is_named(project: pytest.Pytester, change: tuple[str, str], message: str) -> None:
    project.path.joinpath("orders.scenario.yaml").write_text(SCENARIO.replace(*change, 1))
    result = run(project)
    assert result.ret != 0
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_test_simulates_with_mocks_as_keywords(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from tasker.testing.simulation import assert_route, assert_step, mock

        def test_declined(tasker_sim):
            declined = mock.fails("declined", retryable=False)
            run = tasker_sim("workflow.yaml", {"amount": 1}, validate={}, charge=declined)
            assert_route(run, "validate", "charge")
            assert_step(run, "charge", status="error", attempts=1)
        """
    )
    run(project).assert_outcomes(passed=1)


def test_coverage_is_shown_with_what_is_missing_and_required(project: pytest.Pytester) -> None:
    project.path.joinpath("orders.scenario.yaml").write_text(SCENARIO)
    shown = run(project, "--tasker-coverage")
    shown.assert_outcomes(passed=2)
    shown.stdout.fnmatch_lines(
        ["*coverage of templates*", "*shop/orders", "*missing: charge: fails (*workflow.yaml:7)"]
    )
    assert shown.ret == 0
    assert run(project, "--tasker-coverage=90").ret == 1
    assert run(project, "--tasker-coverage=50").ret == 0


def test_coverage_is_put_together_from_processes(project: pytest.Pytester) -> None:
    project.path.joinpath("orders.scenario.yaml").write_text(SCENARIO)
    alone = run(project, "--tasker-coverage")
    several = run(project, "--tasker-coverage", "-n", "2")
    several.assert_outcomes(passed=2)
    line = next(line for line in alone.stdout.lines if line.endswith("shop/orders"))
    assert line in several.stdout.lines


def test_nothing_of_tasker_is_imported_until_it_is_used(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import subprocess, sys

        def test_imports():
            code = "import sys, tasker.testing.pytest_plugin; print([name for name in sys.modules if 'tasker' in name])"
            names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            assert "tasker.simulation" not in names and "tasker.db" not in names and "tasker.template" not in names
        """
    )
    run(project).assert_outcomes(passed=1)


def test_a_scenario_file_is_no_template(project: pytest.Pytester) -> None:
    project.path.joinpath("workflow.yaml").rename(project.path / "orders.yaml")
    project.path.joinpath("orders.scenario.yaml").write_text(SCENARIO)
    assert [file.name for file in find_templates(project.path)] == ["orders.yaml"]


WITH_COMMENTS = """# Cases of orders
template: workflow.yaml
mocks: {validate: {result: {ok: true}}, ship: {result: {carrier: DHL}}, review: {result: {}}}
cases:
  # the usual one
  - name: paid at once
    input: {amount: 120}   # below the limit
    mocks: {charge: {result: {id: 7}, takes: 2s}}
    expect:
      status: error   # wrong
      route: [validate, charge]
      results: {ship: {carrier: UPS}}
      duration: "< 1s"
  - name: right already
    input: {amount: 5000}
    mocks: {charge: {result: {}}}
    expect: {route: [validate,   charge, route, review]}
"""


def test_update_writes_only_what_differs_and_keeps_comments(project: pytest.Pytester) -> None:
    file = project.path.joinpath("orders.scenario.yaml")
    file.write_text(WITH_COMMENTS)
    result = run(project, "--tasker-update")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["updated *orders.scenario.yaml: paid at once"])
    before, after = WITH_COMMENTS.splitlines(), file.read_text().splitlines()
    changed = {old.strip(): new.strip() for old, new in zip(before, after, strict=True) if old != new}
    assert changed == {
        "status: error   # wrong": "status: complete   # wrong",
        "route: [validate, charge]": "route: [validate, charge, route, ship]",
        "results: {ship: {carrier: UPS}}": "results: {ship: {carrier: DHL}}",
        'duration: "< 1s"': "duration: <= 2s",
    }
    run(project).assert_outcomes(passed=2)


BLOCKS = """template: workflow.yaml
mocks: {validate: {result: {ok: true}}, ship: {result: {}}, charge: [{fails: late}, {result: {}}]}
cases:
- name: blocks
  input: {amount: 1}
  expect:
    route: # the way
    - validate
    - charge   # at the second attempt
    # what follows
    attempts:
      charge: 1  # once
      ship: 1

    failures:
      charge: early
      review: never
"""


def test_update_replaces_blocks_and_leaves_their_surroundings(project: pytest.Pytester) -> None:
    file = project.path.joinpath("orders.scenario.yaml")
    file.write_text(BLOCKS)
    run(project, "--tasker-update").assert_outcomes(passed=1)
    head, _ = BLOCKS.split("    route:")
    assert (
        file.read_text()
        == head
        + """    route: [validate, charge, route, ship]  # the way   # at the second attempt
    # what follows
    attempts:
      charge: 2  # once
      ship: 1

    failures: {charge: late}
"""
    )
    run(project).assert_outcomes(passed=1)


def test_update_works_over_several_processes(project: pytest.Pytester) -> None:
    project.path.joinpath("orders.scenario.yaml").write_text(WITH_COMMENTS)
    run(project, "--tasker-update", "-n", "2").assert_outcomes(passed=2)
    run(project).assert_outcomes(passed=2)


def test_coverage_is_required_over_several_processes(project: pytest.Pytester) -> None:
    project.path.joinpath("orders.scenario.yaml").write_text(SCENARIO)
    assert run(project, "--tasker-coverage=90", "-n", "2").ret == 1
    assert run(project, "--tasker-coverage=50", "-n", "2").ret == 0


def test_fixtures_give_fakes_and_collect_events(project: pytest.Pytester) -> None:
    project.path.joinpath("handlers.py").write_text("""
from tasker.step_handler import step_handler

@step_handler("shop.validate")
def validate(context):
    return {"ok": context.resource("bank").check(1)}
""")
    text = WORKFLOW.replace("handler: shop.charge", "handler: shop.charge, publishes_events: [{name: order.paid}]")
    project.path.joinpath("workflow.yaml").write_text(text)
    project.makepyfile(
        """
        from tasker.testing.simulation import assert_no_effects, assert_published

        class Bank:
            def check(self, number):
                return True

        def test_paid(tasker_sim, tasker_resources, tasker_events):
            tasker_resources["bank"] = Bank()
            run = tasker_sim("workflow.yaml", {"amount": 1}, charge={"id": 3}, ship={}, real=True)
            assert run.step("validate").result == {"ok": True}
            assert [str(call) for call in tasker_resources.calls] == ["bank.check(1)"]
            assert_published(tasker_events, "order.paid", {"id": 3})

        def test_mocked(tasker_sim, tasker_resources):
            assert tasker_sim("workflow.yaml", {"amount": 1}, mocks="schemas").status == "complete"
            assert_no_effects(tasker_resources)
        """
    )
    run(project).assert_outcomes(passed=2)


def test_failing_test_shows_the_hint_of_the_error(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", workflow=WORKFLOW)
    pytester.makepyfile(
        """
        def test_typo(tasker_sim):
            tasker_sim("workflow.yaml", {"amount": 1}, mock_all=True).why("shipp")
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*UsageError: shop/orders has no step 'shipp'", "*Hint: did you mean `ship`?"])

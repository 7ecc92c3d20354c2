"""What the change from one version of a template to another breaks, and for whom."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tasker.cli.main import cli
from tasker.template import compile_text
from tasker.template.diff import Comparison, Version, compare, compare_all
from tasker.template.normalized import normalized
from tasker.template.version_advice import version_advice
from tests.unit.template.support import DATA

EVERY_KEY = (DATA / "good" / "every_key.yaml").read_text()


def schema(required: str = "", **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": fields}


INT, NUM, STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
BASE: dict[str, Any] = {
    "name": "checkout",
    "namespace": "shop",
    "version": "1.2.3",
    "input_schema": schema("customer", customer=STR, tier={"enum": ["standard", "gold"]}),
    "steps": [
        {"name": "quote", "handler": "shop.quote", "result_schema": schema("amount", amount=INT, code=STR)},
        {"name": "charge", "handler": "shop.charge", "dependencies": ["quote"], "result_schema": schema("id", id=STR)},
    ],
}


def version(changes: Mapping[str, Any] | None = None, file: str = "new.yaml", **steps: Mapping[str, Any]) -> Version:
    """The base with other keys, also in steps by name; None takes a key, or a step, away."""
    document = {**BASE, **(changes or {})}
    names = {step["name"] for step in BASE["steps"]}
    changed = [
        {**step, **(steps.get(step["name"], {}))} for step in BASE["steps"] if steps.get(step["name"], {}) is not None
    ]
    document["steps"] = changed + [{"name": name, **keys} for name, keys in steps.items() if name not in names]
    document["steps"] = [{k: v for k, v in step.items() if v is not None} for step in document["steps"]]
    result = compile_text(
        yaml.safe_dump({k: v for k, v in document.items() if v is not None}, sort_keys=False), file=file
    )
    assert result.ok, result.diagnostics
    return Version(result.plans[0], result.places[0])


OLD = version(file="old.yaml")


def found(changes: Mapping[str, Any] | None = None, **steps: Any) -> list[tuple[str, str, str]]:
    comparison = compare(OLD, version(changes, **steps))
    return [(change.code, str(change.reader), str(change.level)) for change in comparison.changes]


NARROWER_INPUT = ("input_schema_narrowed", "callers", "breaking")
WIDER_INPUT = ("input_schema_widened", "handlers", "breaking")
NARROWER_RESULT = ("result_schema_narrowed", "handlers", "breaking")
WIDER_RESULT = ("result_schema_widened", "handlers", "breaking")
OLD_CALLABLE = ("callable_removed", "running_tasks", "warning")
TIER = BASE["input_schema"]["properties"]["tier"]

TEMPLATE_CHANGES = [
    ({"version": "1.2.4"}, []),
    ({"description": "other"}, [("description_changed", "new_tasks", "info")]),
    ({"name": "other"}, [("name_changed", "callers", "breaking")]),
    ({"namespace": "store"}, [("namespace_name_changed", "callers", "breaking")]),
    ({"identity_strategy": "always_unique"}, [("identity_strategy_changed", "callers", "breaking")]),
    ({"deadline": "2d"}, [("deadline_changed", "callers", "warning")]),
    ({"priority": "high"}, [("priority_changed", "new_tasks", "info")]),
    ({"input_schema": schema("customer tier", customer=STR, tier=TIER)}, [NARROWER_INPUT]),
    ({"input_schema": schema("customer", customer=STR, tier={"enum": ["gold"]})}, [NARROWER_INPUT]),
    ({"input_schema": {**BASE["input_schema"], "additionalProperties": False}}, [NARROWER_INPUT]),
    ({"input_schema": schema("", customer=STR, tier=TIER)}, [WIDER_INPUT]),
    ({"input_schema": schema("customer", customer=STR, tier=STR)}, [WIDER_INPUT]),
    ({"input_schema": schema("customer", customer=STR, tier=TIER, note=STR)}, []),
    ({"input_schema": None}, [("input_schema_widened", "handlers", "warning")]),
]  # fmt: skip
STEP_CHANGES = [
    ({"audit": {"handler": "shop.audit"}}, [("step_added", "new_tasks", "info")]),
    ({"charge": None}, [OLD_CALLABLE, ("step_removed", "new_tasks", "info")]),
    ({"charge": {"dependencies": None}}, [("dependencies_changed", "new_tasks", "info")]),
    ({"charge": {"retry": {"max_attempts": 9}}}, [("retry_changed", "new_tasks", "info")]),
    ({"charge": {"handler": "shop.pay"}}, [("callable_changed", "handlers", "breaking"), OLD_CALLABLE]),
    ({"charge": {"handler": "shop.quote"}}, [("callable_changed", "handlers", "breaking"), OLD_CALLABLE]),
    ({"charge": {"handler": {"callable": "shop.charge", "method": "p"}}}, [("method_changed", "handlers", "breaking")]),
    ({"charge": {"requires": ["gpu"]}}, [("requires_changed", "handlers", "warning")]),
    ({"quote": {"result_schema": schema("amount", amount=NUM, code=STR)}}, [WIDER_RESULT]),
    ({"quote": {"result_schema": schema("", amount=INT, code=STR)}}, [WIDER_RESULT]),
    ({"quote": {"result_schema": schema("amount code", amount=INT, code=STR)}}, [NARROWER_RESULT]),
    ({"quote": {"result_schema": schema("amount", amount=INT)}}, []),
    ({"quote": {"result_schema": schema("code", code=STR)}}, [NARROWER_RESULT, WIDER_RESULT]),
    ({"charge": {"result_schema": schema("", id=STR)}}, [("result_schema_widened", "callers", "warning")]),
    ({"charge": {"publishes_events": [{"name": "paid"}]}}, [("event_added", "new_tasks", "info")]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), TEMPLATE_CHANGES)
def test_a_change_of_the_template_concerns_its_readers(changes: dict[str, Any], expected: list[Any]) -> None:
    assert found(changes) == expected


@pytest.mark.parametrize(("steps", "expected"), STEP_CHANGES)
def test_a_change_of_a_step_concerns_its_readers(steps: dict[str, Any], expected: list[Any]) -> None:
    assert found(**steps) == expected


def test_handlers_of_steps_with_inputs_do_not_read_the_whole_input() -> None:
    inputs = {"inputs": {"customer": "${input.customer}"}}
    both = {"quote": inputs, "charge": inputs}
    wider = {"input_schema": schema("customer", customer=STR, tier=STR)}
    assert compare(version(**both), version(wider, **both)).changes == ()


def test_an_event_that_is_gone_breaks_subscribers() -> None:
    event = {"name": "paid", "schema": schema("id", id=STR)}
    old = version(charge={"publishes_events": [event]})
    wider = version(charge={"publishes_events": [{"name": "paid", "schema": schema("", id=STR)}]})
    codes = [[change.code for change in compare(old, new).changes] for new in (OLD, wider)]
    assert codes == [["event_removed"], ["event_schema_widened"]]


def test_every_changed_key_is_a_change_with_its_places() -> None:
    document = yaml.safe_load(EVERY_KEY)
    old = compile_text(EVERY_KEY, file="old.yaml")
    assert old.ok
    bare = {
        "name": document["name"],
        "namespace": "other",
        "version": "9.0.0",
        "steps": [{"name": "x", "handler": "y"}],
    }
    new = compile_text(yaml.safe_dump(bare), file="new.yaml")
    before, after = Version(old.plans[0], old.places[0]), Version(new.plans[0], new.places[0])
    paths = {change.path for change in compare(before, after).changes}
    keys = normalized(before.plan).keys() - {"name", "version", "steps"}
    assert keys <= paths
    assert all(change.before and change.after for change in compare(before, after).changes)


def test_a_change_names_the_lines_of_both_sides() -> None:
    (change,) = compare(OLD, version({"input_schema": schema("customer tier", customer=STR, tier=TIER)})).changes
    assert (change.before, change.after) == ("old.yaml:11", "new.yaml:12")
    assert change.path == "input_schema.properties.tier"


@pytest.mark.parametrize(
    ("old", "new", "changes", "expected"),
    [
        ("1.2.3", "1.2.3", {"description": "x"}, ("patch", "1.2.4", False)),
        ("1.2.3", "1.2.4", {"description": "x"}, ("patch", "1.2.4", True)),
        ("1.2.3", "1.2.4", {"deadline": "1h"}, ("minor", "1.3.0", False)),
        ("1.2.3", "1.9.0", {"identity_strategy": "always_unique"}, ("major", "2.0.0", False)),
        ("0.2.3", "0.3.0", {"identity_strategy": "always_unique"}, ("major", "0.3.0", True)),
    ],
)
def test_the_version_follows_the_changes(old: str, new: str, changes: dict[str, Any], expected: Any) -> None:
    advice = version_advice(compare(version({"version": old}), version({"version": new, **changes})))
    assert advice is not None
    assert (advice.part, advice.advised, advice.enough) == expected


def test_templates_are_compared_by_name() -> None:
    other = version({"name": "refund"})
    compared = compare_all([OLD, other], [version({"name": "refund", "version": "2.0.0"}), version({"name": "audit"})])

    def names(comparison: Comparison) -> tuple[str | None, str | None]:
        before, after = (None if v is None else str(v.plan.id) for v in (comparison.before, comparison.after))
        return before, after

    assert [names(comparison) for comparison in compared] == [
        ("shop/checkout:1.2.3", None),
        ("shop/refund:1.2.3", "shop/refund:2.0.0"),
        (None, "shop/audit:1.2.3"),
    ]
    assert [change.code for comparison in compared for change in comparison.changes] == [
        "template_removed", "template_added",
    ]  # fmt: skip


def tasker(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["template", "diff", *map(str, arguments)])


def written(path: Path, **changes: Any) -> Path:
    path.write_text(yaml.safe_dump({**BASE, **changes}, sort_keys=False))
    return path


def test_the_exit_code_says_what_breaks(tmp_path: Path) -> None:
    old = written(tmp_path / "old.yaml")
    for changes, code in (({}, 0), ({"priority": 5}, 0), ({"deadline": "1h"}, 3), ({"name": "other"}, 1)):
        assert tasker(old, written(tmp_path / "new.yaml", **changes)).exit_code == code, changes
    assert tasker(old, old).output == "no changes\n"


def test_json_holds_every_finding(tmp_path: Path) -> None:
    old, new = written(tmp_path / "old.yaml"), written(tmp_path / "new.yaml", deadline="1h")
    report = json.loads(tasker(old, new, "--format", "json").output)
    (template,) = report["templates"]
    assert (report["compatible"], template["version"]) == (True, {"raise": "minor", "least": "1.3.0", "enough": False})
    assert [(finding["code"], finding["breaking"]) for finding in template["findings"]] == [("deadline_changed", False)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["OLD"], "expected two targets, or one with --registered, got 1"),
        (["OLD", "OLD", "--registered"], "expected one target with --registered, got 2"),
        (["OLD", "nothing.yaml"], "nothing.yaml does not exist"),
        (["--registered", "shop/checkout"], "with --registered, AFTER is a file or a folder"),
    ],
)
def test_a_wrong_target_is_refused(arguments: list[str], message: str, tmp_path: Path) -> None:
    old = str(written(tmp_path / "old.yaml"))
    result = tasker(*[old if argument == "OLD" else argument for argument in arguments])
    assert (result.exit_code, message in result.output) == (2, True), result.output

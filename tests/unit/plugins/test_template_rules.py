"""Rules of plugins about templates: found in their place like ours, and one that fails keeps nobody from working."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tasker.cli.main import cli
from tasker.errors import TemplateError
from tasker.plugins.contributions import rules_of
from tasker.plugins.host import PluginHost
from tasker.plugins.threads import PluginQueueLimits
from tasker.services.workflows.texts import TemplateTexts
from tasker.template.compile import CompileResult, compile_text
from tasker.template.plan import Plan
from tasker.template.plugin_rules import RuleFinding
from tests.docs.snippets import snippets
from tests.support.strangers import install_plugin

TEXT = """name: order
namespace: shop
version: 1.0.0
steps:
  - name: pay
    handler: pay
    retry: {max_attempts: 7}
"""
SOURCE = """
from tasker.plugins.hooks import RuleFinding, hookimpl

@hookimpl
def tasker_template_rules(plan):
    yours = [RuleFinding("owner", "nobody owns it", severity="warning", hint="write metadata: {owner: ...}")]
    many = {step.name: step.retry.max_attempts for step in plan.steps if step.retry.max_attempts > 5}
    place = ("retry", "max_attempts")
    return yours + [RuleFinding("patience", f"{count} attempts", name, place) for name, count in many.items()]
"""


def compiled(hook: Any, limits: PluginQueueLimits | None = None, text: str = TEXT) -> CompileResult:
    return compile_text(text, rules=rules_of(PluginHost({"shop": {"tasker_template_rules": hook}}, limits)))


def test_findings_of_plugins_are_reported_with_place_and_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_plugin(tmp_path, monkeypatch, "shop", SOURCE)
    file = tmp_path / "order.yaml"
    file.write_text(TEXT)
    result = CliRunner().invoke(cli, ["template", "validate", str(file)])
    assert result.exit_code == 1
    assert f"{file}:1:7: warning[shop.owner]: nobody owns it\n" in result.output
    assert "  = hint: write metadata: {owner: ...}\n" in result.output
    assert f"{file}:7:27: error[shop.patience]: 7 attempts\n" in result.output
    assert "1 error, 1 warning" in result.output
    sarif = json.loads(CliRunner().invoke(cli, ["template", "validate", str(file), "--format", "sarif"]).output)
    (rule, _) = sarif["runs"][0]["tool"]["driver"]["rules"]
    assert rule == {"id": "shop.owner", "shortDescription": {"text": "A rule of the plugin shop"}}
    run = CliRunner().invoke(cli, ["run", str(file)])
    assert run.exit_code == 2
    assert "error[shop.patience]" in run.output
    registered = CliRunner().invoke(cli, ["template", "register", str(file)])
    assert registered.exit_code == 2
    assert "error[shop.patience]" in registered.output


def test_a_text_with_an_error_that_a_plugin_finds_is_not_registered_and_a_warning_is_told() -> None:
    severity: list[Any] = ["error"]
    hooks = {"tasker_template_rules": lambda plan: [RuleFinding("owner", "nobody owns it", severity=severity[0])]}
    texts = TemplateTexts(None, None, rules_of(PluginHost({"shop": hooks})))  # type: ignore[arg-type]
    with pytest.raises(TemplateError, match="nobody owns it") as raised:
        asyncio.run(texts.compiled(TEXT))
    assert raised.value.diagnostics[0].code == "shop.owner"
    severity[0] = "warning"
    found = asyncio.run(texts.compiled(TEXT))
    assert [each.message for each in found.diagnostics] == ["nobody owns it"]
    assert len(found.plans) == 1


def test_two_findings_of_one_rule_at_one_place_are_both_told() -> None:
    found = compiled(lambda plan: [RuleFinding("a", "one"), RuleFinding("a", "two"), RuleFinding("a", "two")])
    assert [(each.message, each.line, each.column) for each in found.diagnostics] == [("one", 1, 7), ("two", 1, 7)]


def test_plugins_are_not_asked_about_a_template_with_an_error_of_ours() -> None:
    asked: list[Plan] = []
    assert not compiled(asked.append, text=TEXT.replace("max_attempts", "max_atempts")).ok
    assert asked == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda plan: 1 / 0, "ZeroDivisionError('division by zero')"),
        (lambda plan: [RuleFinding("a", "b"), 7], "tasker_template_rules() gives 7, and must give a list of"),
        (lambda plan: exit(3), "SystemExit(3)"),
    ],
)
def test_a_rule_that_fails_is_a_warning_and_the_template_can_be_used(answer: Any, reason: str) -> None:
    found = compiled(answer)
    (warning,) = found.diagnostics
    assert (warning.code, warning.severity, warning.line, len(found.plans)) == ("T086", "warning", 1, 1)
    assert f"the rules of the plugin `shop` could not be asked: {reason}" in warning.message


def test_a_rule_that_does_not_return_is_waited_for_once() -> None:
    stuck, asked = threading.Event(), list[Plan]()

    def block(plan: Plan) -> None:
        asked.append(plan)
        stuck.wait()

    rules = rules_of(PluginHost({"shop": {"tasker_template_rules": block}}, PluginQueueLimits(answer_seconds=0.01)))
    for reason in ("it has not answered within 0.01 seconds", "the plugin is switched off: tasker_template_rules"):
        found = compile_text(TEXT, rules=rules)
        assert len(found.plans) == 1
        assert reason in found.diagnostics[0].message
    assert len(asked) == 1
    stuck.set()


def test_the_rules_of_the_page_find_what_it_says() -> None:
    page, names = Path(__file__).parents[3] / "docs" / "writing-plugins.md", dict[str, Any]()
    (snippet,) = [each.text for each in snippets(page.read_text()) if "def tasker_template_rules" in each.text]
    exec(snippet, names)
    found = compiled(names["tasker_template_rules"])
    assert [(each.code, each.line) for each in found.diagnostics] == [("shop.owner", 1), ("shop.patience", 7)]


def test_a_plugin_without_rules_is_not_asked() -> None:
    assert rules_of(PluginHost({"shop": {"tasker_sweep_repaired": print}})) == []

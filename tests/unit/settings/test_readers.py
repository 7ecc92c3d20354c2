"""A setting that is accepted does something: changing it changes what a process is made with."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tasker.app import configured as seam
from tasker.app.configured import UNCONFIGURED, Configured, configured, template_environment
from tasker.installed import backend_modules
from tasker.messaging.listening_modes import EventSettings
from tasker.messaging.queues import QueueNames
from tasker.resilience.breakers import BreakerPolicies
from tasker.settings.catalogue import Parameter, by_path, parameters, single_process
from tasker.settings.check import check
from tasker.settings.installed_tables import plugin_tables, settings_model
from tasker.settings.model import Settings
from tasker.settings.nested import deep_merge, nested
from tasker.settings.reference import reference
from tasker.settings.refused_keys import RESERVED
from tasker.settings.retention import LIMITS
from tasker.template.names import MAX_COUNT
from tasker.template.plan import RetryPolicy
from tests.support.parameters import READ, changed, companions
from tests.support.tables import for_each

ROOT = Path(__file__).parents[3]


def settings_with(path: str, value: Any) -> Settings:
    found = check(nested({path: value})).settings
    assert found is not None, f"{path} = {value!r}"
    return found


@for_each(READ)
def test_a_setting_that_is_accepted_changes_what_a_process_is_made_with(parameter: Parameter) -> None:
    before = check(nested(companions(parameter.path))).settings
    assert before
    assert any(configured(settings) != configured(before) for _, settings in changed(parameter))


def test_every_number_of_the_settings_is_bounded_so_that_times_and_columns_can_hold_it() -> None:
    numbers = [each for each in parameters() if isinstance(each.default, int | float) and each.kind != "flag"]
    unbounded = [p.path for p in numbers if not isinstance(p.default, bool) and (p.low is None or p.high is None)]
    assert len(numbers) > 100
    assert not unbounded
    assert not [p.path for p in numbers if (p.high or 0) > MAX_COUNT]


def test_every_reserved_path_names_settings() -> None:
    assert all(any(each == path or each.startswith(f"{path}.") for each in by_path()) for path in RESERVED)


BACKENDS = [name for name, _ in backend_modules()]
READERS: dict[Any, set[str]] = {
    Configured: {"configuration", "_configuration", "chosen", "limits", "found"},
    QueueNames: {"names", "self"},
    EventSettings: {"settings", "_settings"},
    BreakerPolicies: {"policies", "_policies"},
}
"""What the seam makes, and what it is called where it is read: another thing with a field of that name is no reader."""


@cache
def attributes(*without: str) -> frozenset[tuple[str, str]]:
    """Who is asked for which attribute, outside of these folders."""
    everything = [file for folder in ("tasker", "plugins") for file in (ROOT / folder).rglob("*.py")]
    files = [file for file in everything if file.parent.name not in without]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    read = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)]
    return frozenset((name_of(node.value), node.attr) for node in read)


def name_of(value: ast.expr) -> str:
    if isinstance(value, ast.BoolOp):
        return "or"
    return str(getattr(value, "id", None) or getattr(value, "attr", ""))


def is_read(kind: Any, field: str) -> bool:
    return any((reader, field) in attributes("configured", "settings") for reader in READERS[kind])


def overruling_or_foreign(parameter: Parameter) -> bool:
    """A setting of a backend: it gets its table as a dict; and one that takes the place of another."""
    return parameter.overrules is not None or parameter.path.startswith(
        tuple(f"common.queues.{name}." for name in BACKENDS)
    )


@for_each([parameter for parameter in READ if not overruling_or_foreign(parameter)])
def test_a_setting_is_read_by_its_name(parameter: Parameter) -> None:
    by_name = {*LIMITS, "preset"}
    assert parameter.name in by_name or any(parameter.name == name for _, name in attributes())


@pytest.mark.parametrize("kind", READERS, ids=lambda kind: kind.__name__)
def test_what_the_settings_become_is_used(kind: Any) -> None:
    assert [field for field in kind.__dataclass_fields__ if not is_read(kind, field)] == []


def test_what_is_only_named_somewhere_is_not_used() -> None:
    assert any(name == "correlation_id" for _, name in attributes("configured", "settings"))
    assert not is_read(BreakerPolicies, "correlation_id")


def test_without_a_file_everything_is_as_the_settings_of_a_single_process_say() -> None:
    single = check(nested(single_process())).settings
    assert single is not None
    made = configured(single)
    assert made.retry == RetryPolicy()  # what is stored with a template for which nobody has said anything
    assert replace(made, retry=None) == UNCONFIGURED


def test_unset_is_not_default() -> None:
    spelled_out = nested({"worker.event_systems.worker.timing.fallback_polling_interval_seconds": 2})
    settings = check(spelled_out).settings
    assert settings is not None
    assert settings == settings_model()()
    assert configured(settings).worker.events.poll_ms == 2000
    assert configured(settings_model()()).worker.events.poll_ms == 1000


def test_of_several_keys_for_one_thing_the_most_specific_one_that_is_set_wins() -> None:
    poller = nested({"worker.event_systems.worker.metadata.fallback_poller.polling_interval_ms": 900})
    timing = nested({"worker.event_systems.worker.timing.fallback_polling_interval_seconds": 3})
    pgmq = nested({"common.queues.pgmq.poll_interval_ms": 700})
    for layers, expected in (([pgmq], 700), ([pgmq, timing], 3000), ([pgmq, timing, poller], 900)):
        values: dict[str, Any] = {}
        for layer in layers:
            values = deep_merge(values, layer)
        settings = check(values).settings
        assert settings is not None
        assert configured(settings).worker.events.poll_ms == expected


def test_the_environment_of_templates_is_that_of_the_settings_once_it_is_set() -> None:
    assert template_environment(settings_model()()) is None
    assert template_environment(settings_with("common.execution.environment", "development")) == "development"


def test_a_program_without_configuration_does_not_pay_for_it() -> None:
    code = "from tasker.app.configured import from_environment as f; f(environ={}); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert not {"pydantic", "tasker.settings.model"} & loaded


def test_variables_that_give_a_value_count_without_a_file_too() -> None:
    own = [each for each in READ if each.table not in {kind.__doc__ for _, kind in plugin_tables()}]
    read = {name for parameter in own for name in parameter.variables}
    assert read == {*seam.value_variables(), "DATABASE_URL"}
    made = seam.from_environment(environ={"RABBITMQ_URL": "amqp://broker/x", "TASKER_MESSAGING_BACKEND": "rabbitmq"})
    assert (made.backend, made.backend_settings) == ("rabbitmq", {"rabbitmq": {"url": "amqp://broker/x"}})


def test_the_reference_is_current() -> None:
    file = ROOT / "docs" / "reference" / "configuration.md"
    assert file.read_text() == reference(), "run: tasker config docs --output docs/reference/configuration.md"


def test_the_reference_names_every_parameter() -> None:
    text = reference()
    assert all(f"| `{parameter.name}` |" in text for parameter in parameters())
    assert f"{len(parameters())}/{len(parameters())} documented (100%)" in text

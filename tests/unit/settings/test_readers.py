"""A setting that is accepted does something: changing it changes what a process is made with."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasker.app import configured as seam
from tasker.app.configured import UNCONFIGURED, Configured, configured
from tasker.app.configured.events import poll_ms
from tasker.app.configured.templates import template_environment
from tasker.db.limits import DatabaseSettings, PoolSettings
from tasker.execution.settings import WorkerSettings
from tasker.lifecycle.choices import Limits
from tasker.lifecycle.deployment import EventSettings
from tasker.lifecycle.pressure import BufferLimits, DepthLimits
from tasker.messaging.queues import QueueNames
from tasker.orchestration.storms import StormSettings
from tasker.orchestration.sweep import SweepSettings
from tasker.resilience.registry import BreakerPolicies
from tasker.services.engine import Rules
from tasker.settings.catalogue import Parameter, by_path, parameters
from tasker.settings.check import check
from tasker.settings.layering import deep_merge, nested
from tasker.settings.model import Settings
from tasker.settings.reference import reference
from tasker.settings.reserved import RESERVED
from tasker.settings.single_process import SINGLE_PROCESS
from tests.support.parameters import READ, changed, path_of

ROOT = Path(__file__).parents[3]


def settings_with(path: str, value: Any) -> Settings:
    found = check(nested({path: value})).settings
    assert found is not None, f"{path} = {value!r}"
    return found


@pytest.mark.parametrize("parameter", READ, ids=path_of)
def test_a_setting_that_is_accepted_changes_what_a_process_is_made_with(parameter: Parameter) -> None:
    assert any(configured(settings) != configured(Settings()) for _, settings in changed(parameter))


def test_every_reserved_path_names_settings() -> None:
    assert all(any(each == path or each.startswith(f"{path}.") for each in by_path()) for path in RESERVED)


def test_what_the_settings_become_is_used() -> None:
    """Every field of what the seam makes is read somewhere outside of it."""
    read: set[str] = set()
    for file in (ROOT / "tasker").rglob("*.py"):
        if file.parent.name != "configured":
            tree = ast.parse(file.read_text())
            read |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    made = [Configured, WorkerSettings, SweepSettings, Rules, Limits, QueueNames, EventSettings]
    made += [BreakerPolicies, BufferLimits, DatabaseSettings, DepthLimits, PoolSettings, StormSettings]
    assert {name for kind in made for name in kind.__dataclass_fields__} <= read


def test_without_a_file_everything_is_as_the_settings_of_a_single_process_say() -> None:
    single = check(nested(SINGLE_PROCESS)).settings
    assert single is not None
    assert configured(single) == UNCONFIGURED


def test_unset_is_not_default() -> None:
    spelled_out = nested({"worker.event_systems.worker.timing.fallback_polling_interval_seconds": 2})
    settings = check(spelled_out).settings
    assert settings is not None
    assert settings == Settings()
    assert poll_ms(settings) == 2000
    assert poll_ms(Settings()) == 1000


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
        assert poll_ms(settings) == expected


def test_the_environment_of_templates_is_that_of_the_settings_once_it_is_set() -> None:
    assert template_environment(Settings()) is None
    assert template_environment(settings_with("common.execution.environment", "development")) == "development"


def test_a_program_without_configuration_does_not_pay_for_it() -> None:
    code = "from tasker.app.configured import from_environment as f; f(environ={}); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert not {"pydantic", "tasker.settings.model"} & loaded


def test_variables_that_give_a_value_count_without_a_file_too() -> None:
    read = {name for parameter in READ for name in parameter.variables}
    assert read == {*seam.VALUE_VARIABLES, "DATABASE_URL"}
    made = seam.from_environment(environ={"RABBITMQ_URL": "amqp://broker/x", "TASKER_MESSAGING_BACKEND": "rabbitmq"})
    assert (made.backend, made.backend_settings) == ("rabbitmq", {"rabbitmq": {"url": "amqp://broker/x"}})


def test_the_reference_is_current() -> None:
    file = ROOT / "docs" / "reference" / "configuration.md"
    assert file.read_text() == reference(), "run: tasker config docs --output docs/reference/configuration.md"


def test_the_reference_names_every_parameter() -> None:
    text = reference()
    assert all(f"| `{parameter.name}` |" in text for parameter in parameters())
    assert f"{len(parameters())}/{len(parameters())} documented (100%)" in text

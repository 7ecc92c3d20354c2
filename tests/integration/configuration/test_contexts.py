"""What a process is made with is what its merged file was made of."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tasker.app.configured import UNCONFIGURED, Configured, configured
from tasker.services.configuration.loading import generate
from tasker.services.configuration.sources import ROOTS, read_layer
from tasker.settings.check import check
from tasker.settings.model import Settings
from tasker.settings.nested import nested
from tasker.settings.toml_text import toml_text
from tests.support.parameters import READ, changed, companions

NOW = datetime(2025, 10, 17, 15, 30, 45, tzinfo=UTC)


def of_a_worker(settings: Settings) -> Configured:
    """What a worker is made with: all but how an orchestrator hears of results, and how a server answers."""
    made, none = configured(settings), UNCONFIGURED
    return replace(made, orchestrator_events=none.orchestrator_events, http=none.http)


def test_whatever_changes_a_worker_is_in_its_generated_file(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "environments" / "test").mkdir(parents=True)
    merged = tmp_path / "worker-test.toml"
    for parameter, (value, settings) in ((each, change) for each in READ for change in changed(each)):
        for root in ROOTS:
            written = nested({parameter.path: value, **companions(parameter.path)})
            text = toml_text(written) if parameter.path.startswith(f"{root}.") else ""
            (tmp_path / "base" / f"{root}.toml").write_text(text)
        merged.write_text(generate("worker", "test", tmp_path, {}, NOW))
        found = check(read_layer(merged).tables).settings
        assert found is not None, parameter.path
        assert of_a_worker(found) == of_a_worker(settings), parameter.path

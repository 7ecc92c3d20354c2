"""`tasker db prune`: says what would go, deletes it, and does what is configured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.engine.fleet.test_retention import ended, left
from tests.support.command_line import invoke
from tests.support.engine_fixture import Lab


def test_the_command_says_what_would_go_and_deletes_it(lab: Lab) -> None:
    tasks = ended(lab, 31, 2)
    asked = ("db", "prune", "--completed-days", "30", "--database-url", lab.url)

    planned = invoke(*asked, "--dry-run").output
    assert "2 tasks would be deleted" in planned
    assert left(lab) == {*tasks}
    (done,) = json.loads(invoke(*asked, "--format", "json").output)

    assert (done["template"], done["tasks"], done["kept"]) == ("chain", 2, 0)
    assert left(lab) == set()
    assert "ended within the last hour are always kept" in invoke(*asked).output


def test_without_options_the_command_does_what_is_configured(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "merged.toml").write_text("[common.retention]\ncompleted_days = 30\n")
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "merged.toml"))
    monkeypatch.setenv("DATABASE_URL", lab.url)
    ended(lab, 31, 2)
    young = ended(lab, 29)

    assert "2 tasks were deleted" in invoke("db", "prune", "--database-url", lab.url).output
    assert left(lab) == {*young}


def test_the_command_wants_a_limit(lab: Lab) -> None:
    refused = invoke("db", "prune", "--namespace", "x", "--database-url", lab.url)

    assert refused.exit_code == 2
    assert "--completed-days" in refused.output + refused.stderr

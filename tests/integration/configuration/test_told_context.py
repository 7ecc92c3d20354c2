"""`config explain` and `show` without `--context` tell what the process uses that a file was made for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tasker.services.configuration.loading import load
from tasker.settings.catalogue import single_process
from tests.integration.configuration.conftest import Write

KEYS = sorted(set(single_process()) - {"common.database.url"})
AMBIGUOUS = "worker.handlers.allow"


@pytest.mark.parametrize("context", ["worker", "orchestration", "complete"])
def test_a_generated_file_is_told_as_the_process_that_it_was_made_for_uses_it(
    context: str, run: Callable[..., Result], sources: Path
) -> None:
    file = sources / "generated" / f"{context}-development.toml"
    arguments = ("--context", context, "--environment", "development", "--source-dir", sources)
    assert run("generate", *arguments).exit_code == 0
    used = load(context, {"TASKER_CONFIG_PATH": str(file)})
    shown = json.loads(run("show", "--format", "json", TASKER_CONFIG_PATH=str(file)).stdout)
    assert shown["metadata"]["context"] == context
    for key in KEYS:
        told = json.loads(run("explain", key, "--format", "json", TASKER_CONFIG_PATH=str(file)).stdout)
        assert told["value"] == used.value(key), key
        assert "other_processes" not in told
    assert run("explain", KEYS[0], "--file", file).stderr == ""


def test_a_file_that_tells_no_context_says_where_kinds_of_process_differ(
    run: Callable[..., Result], write: Write
) -> None:
    file = write("merged.toml", '[common.log]\nformat = "json"\n')
    text = run("explain", AMBIGUOUS, "--file", file).stdout
    assert text.startswith(f'{AMBIGUOUS} = ["*"]\n')
    assert "Other processes: [] (--context worker)" in text
    told = json.loads(run("explain", AMBIGUOUS, "--file", file, "--format", "json").stdout)
    assert (told["value"], told["other_processes"]) == (["*"], "[] (--context worker)")
    assert "other_processes" not in json.loads(run("explain", AMBIGUOUS, "--format", "json").stdout)
    assert "other_processes" not in json.loads(
        run("explain", AMBIGUOUS, "--file", file, "--context", "complete", "--format", "json").stdout
    )
    told = run("show", "--file", file).stderr
    assert f"{AMBIGUOUS} = []" in told
    assert told.count("\n") == 1, "all in one line"
    shown = json.loads(run("show", "--file", file, "--format", "json").stdout)
    assert shown["metadata"]["other_processes"][AMBIGUOUS] == []

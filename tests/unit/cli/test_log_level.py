"""TASKER_LOG_LEVEL: what a process tells on standard error."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tasker.app.configured import UNCONFIGURED
from tasker.cli.worker.options import log_as_configured, log_level
from tasker.errors import UsageError

SPEAK = """
import logging
from tasker.cli.worker.options import log_to_stderr
log_to_stderr()
for level in (5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
    logging.getLogger("tasker.process").log(level, "heard")
"""


def tasker(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], env={**os.environ, **environ}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("level", "lines"), [("TRACE", 5), ("DEBUG", 4), ("", 3), ("INFO", 3), ("warning", 2), ("ERROR", 1)]
)
def test_a_process_tells_what_is_at_its_level_or_above(level: str, lines: int) -> None:
    assert tasker("-c", SPEAK, TASKER_LOG_LEVEL=level).stderr.count("tasker.process heard") == lines


def test_without_a_level_none_is_named() -> None:
    assert (log_level({}), log_level({"TASKER_LOG_LEVEL": "debug"})) == (None, logging.DEBUG)


@pytest.mark.parametrize("level", ["LOUD", "10", "basicConfig"])
def test_a_level_that_there_is_not_is_refused(level: str) -> None:
    with pytest.raises(UsageError) as refused:
        log_level({"TASKER_LOG_LEVEL": level})
    assert refused.value.hint == "use one of: TRACE, DEBUG, INFO, WARNING, ERROR"


@pytest.mark.parametrize("command", ["worker", "orchestrator", "run"])
def test_every_process_refuses_it_before_it_does_anything(command: str, tmp_path: object) -> None:
    arguments = ["workflows/linear_math"] if command == "run" else ["--no-config"]
    refused = tasker("-m", "tasker", command, *arguments, "--data-dir", str(tmp_path), TASKER_LOG_LEVEL="LOUD")
    assert refused.returncode == 2
    assert "TASKER_LOG_LEVEL is 'LOUD'" in refused.stderr
    assert "DEBUG, INFO, WARNING, ERROR" in refused.stderr


@pytest.mark.parametrize(
    ("variable", "configured", "form"), [(None, "json", "json"), ("", "json", "json"), ("text", "json", "text")]
)
def test_the_form_is_that_of_the_variable_else_of_the_configuration(
    variable: str | None, configured: str, form: str
) -> None:
    environ = {} if variable is None else {"TASKER_LOG_FORMAT": variable}
    log_as_configured(replace(UNCONFIGURED, log_format=configured), environ)
    assert environ == {"TASKER_LOG_FORMAT": form}, "child processes write the same"

"""TASKER_LOG_LEVEL: what a process tells on standard error."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from tasker.app.configured import UNCONFIGURED
from tasker.cli.commands.process_options import log_as_configured
from tasker.errors import UsageError
from tasker.logging.levels import PARTS, Levels, levels_named
from tasker.server.sockets import HttpServer, listen
from tasker_rabbitmq.link import _quieten_clients
from tests.support.repository import ROOT

SPEAK = """
import logging
from tasker.cli.commands.process_options import log_to_stderr
log_to_stderr()
for level in (5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
    logging.getLogger("tasker.process").log(level, "heard")
"""
KEEP = """
import logging, sys
from tasker.cli.commands.process_options import log_to_stderr
from tasker.logging.current_step import reporter
from tasker.logging.format import log_as_parent
from tasker.logging import log_info
from tasker.logging.step_log import capture_logs

log_to_stderr() if sys.argv[1] == "process" else log_as_parent()
capture_logs()

class Kept:
    def log(self, line):
        print("kept", line.message)
    def printed(self, text):
        pass

reporter.set(Kept())
logging.getLogger("quiet.part").info("1")
logging.getLogger("quiet.loud").debug("2")
logging.getLogger("quiet.loud").info("3")
logging.getLogger("other").info("4")
logging.getLogger("other").warning("5")
logging.getLogger("tasker.orchestration").info("6")
logging.getLogger("tasker.orchestration").debug("7")
logging.getLogger("tasker.submission").info("8")
log_info("9")
"""


def tasker(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], env={**os.environ, **environ}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("level", "lines"), [("TRACE", 5), ("DEBUG", 4), ("", 3), ("INFO", 3), ("warning", 2), ("ERROR", 1)]
)
def test_a_process_tells_what_is_at_its_level_or_above(level: str, lines: int) -> None:
    assert tasker("-c", SPEAK, TASKER_LOG_LEVEL=level).stderr.count("tasker.process heard") == lines


@pytest.mark.parametrize("text", ["", "  "])
def test_without_a_level_none_is_named(text: str) -> None:
    assert (levels_named({}), levels_named({"TASKER_LOG_LEVEL": text})) == (None, None)


@pytest.mark.parametrize(
    ("text", "default", "of"),
    [
        ("debug", "DEBUG", {}),
        ("warn", "WARNING", {}),
        ("info, my_project.handlers = TRACE", "INFO", {"my_project.handlers": "TRACE"}),
        ("tasker.orchestration=debug,error", "ERROR", {"tasker.orchestration": "DEBUG"}),
        ("httpx=warning,2024-report=debug", "INFO", {"httpx": "WARNING", "2024-report": "DEBUG"}),
        ("root=warning", "WARNING", {}),
        ("tasker_nobody=debug", "INFO", {"tasker_nobody": "DEBUG"}),
        (
            "tasker.worker=info,tasker_worker=debug",
            "INFO",
            {**dict.fromkeys(PARTS["tasker_worker"], "DEBUG"), "tasker.worker": "INFO"},
        ),
    ],
)
def test_the_variable_names_a_level_and_levels_of_loggers(text: str, default: str, of: dict[str, str]) -> None:
    numbers = logging.getLevelNamesMapping()
    found = levels_named({"TASKER_LOG_LEVEL": text})
    assert found == Levels(numbers[default], {name: numbers[level] for name, level in of.items()})
    assert found == levels_named({"TASKER_LOG_LEVEL": str(found)}), "so child processes are told"


def test_each_logger_belongs_to_the_published_name_of_one_part() -> None:
    written = re.compile(r"""getLogger\("(tasker\.[^."]+)""")
    files = [file for folder in ("tasker", "compat") for file in (ROOT / folder).rglob("*.py")]
    found = {name for file in files for name in written.findall(file.read_text())}
    named = [name for names in PARTS.values() for name in names]
    assert sorted(named) == sorted(found - {"tasker.handlers"}), "that is what handlers write"


ALL = "TRACE, DEBUG, INFO, WARNING, ERROR"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("LOUD", "is 'LOUD': expected a level or LOGGER=LEVEL, found 'LOUD'", f"levels are {ALL}"),
        ("10", "is '10': expected a level or LOGGER=LEVEL, found '10'", f"levels are {ALL}"),
        (
            "debgu",
            "is 'debgu': expected a level or LOGGER=LEVEL, found 'debgu'",
            f"did you mean DEBUG? levels are {ALL}",
        ),
        (
            "info,tasker.engine",
            "is 'info,tasker.engine', part 2: expected a level or LOGGER=LEVEL, found 'tasker.engine'",
            f"levels are {ALL}",
        ),
        (
            "info,a=debgu",
            "is 'info,a=debgu', part 2: expected a level behind 'a=', found 'debgu'",
            "did you mean DEBUG?",
        ),
        ("tasker=", "is 'tasker=': expected a level behind 'tasker=', found ''", f"levels are {ALL}"),
        (
            "info,,a=debug",
            "is 'info,,a=debug', part 2: expected a level or LOGGER=LEVEL, found ''",
            "take out the comma",
        ),
        ("info,", "is 'info,', part 2: expected a level or LOGGER=LEVEL, found ''", "take out the comma"),
        ("=debug", "is '=debug': expected the name of a logger before '=', found ''", "my_project.handlers"),
        (
            "a::b=info",
            "is 'a::b=info': expected the name of a logger before '=', found 'a::b'",
            "dots between its parts",
        ),
        ("a=b=info", "is 'a=b=info': expected the name of a logger before '=', found 'a=b'", "a comma"),
        ("a=info,b=info,a=debug", "part 3: expected each logger once, found 'a' again", "leave one of them"),
        ("info,debug", "part 2: expected one level for all others, found 'debug' as well", "leave one of them"),
    ],
)
def test_what_is_no_level_is_refused_with_its_place(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        levels_named({"TASKER_LOG_LEVEL": text})
    assert refused.value.message.startswith("TASKER_LOG_LEVEL is '")
    assert message in refused.value.message
    assert hint in str(refused.value.hint)


@pytest.mark.parametrize("where", ["process", "child"])
def test_loggers_write_from_their_own_levels_on_and_steps_keep_what_they_kept(where: str) -> None:
    levels = "warning,quiet=error,quiet.loud=debug,tasker.orchestration=info"
    said = tasker("-c", KEEP, where, TASKER_LOG_LEVEL=levels)
    shown = [line.split()[4] for line in said.stderr.splitlines()]
    assert shown == ["2", "3", "5", "6"], said.stderr
    kept = said.stdout.replace("kept ", "").split()
    assert kept == ["1", "3", "4", "5", "6", "9"], "8 is made for nobody"


def test_a_child_of_a_program_that_sets_up_its_own_log_does_not_fail_for_the_variable() -> None:
    assert tasker("-c", KEEP, "child", TASKER_LOG_LEVEL="LOUD").returncode == 0


def test_libraries_that_are_kept_quiet_have_the_level_that_somebody_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, level in (("uvicorn", logging.NOTSET), ("aio_pika", logging.INFO), ("aiormq", logging.NOTSET)):
        monkeypatch.setattr(logging.getLogger(name), "level", level)
    with closing(listen("127.0.0.1", 0)) as socket:
        for expected in (logging.WARNING, logging.DEBUG):
            HttpServer(lambda *_: None, socket)  # type: ignore[arg-type]
            assert logging.getLogger("uvicorn").level == expected
            logging.getLogger("uvicorn").setLevel(logging.DEBUG)
    _quieten_clients()
    assert [logging.getLogger(name).level for name in ("aio_pika", "aiormq")] == [logging.INFO, logging.CRITICAL]


def test_the_documentation_lists_the_loggers_of_each_part() -> None:
    text = (ROOT / "docs/logs.md").read_text()
    for part, names in PARTS.items():
        listed = ", ".join(f"`{name.removeprefix('tasker.')}`" for name in names)
        assert f"| `{part}` | {listed} |" in text


@pytest.mark.parametrize("command", ["worker", "orchestrator", "run", "dev"])
def test_every_process_refuses_it_before_it_does_anything(command: str, tmp_path: object) -> None:
    arguments = ["workflows/linear_math"] if command in ("run", "dev") else ["--no-config"]
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

"""`tasker.command` runs what the configuration defines: its arguments, environment, output, failures and end."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tasker.errors import ConfigurationError, TaskerError
from tasker.secrets import Secret
from tasker.testing.contexts import step_context
from tasker_steps.command import CommandResource, RunCommand, make_command

ECHO = "import json, os, sys; print(json.dumps([sys.argv[1:], sys.stdin.read(), dict(os.environ), os.getcwd()]))"


def program(code: str, *argv: str, **settings: Any) -> CommandResource:
    return make_command({"argv": [sys.executable, "-I", "-c", code, *argv], **settings})


async def ran(resource: CommandResource, **inputs: Any) -> dict[str, Any]:
    context = step_context({"resource": "tool", **inputs}, resources={"tool": resource})
    result = await RunCommand().call(context)
    return dict(result.result or {})


async def failure(resource: CommandResource, **inputs: Any) -> TaskerError:
    with pytest.raises(TaskerError) as failed:
        await ran(resource, **inputs)
    return failed.value


async def test_program_gets_arguments_and_input_and_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKER_SECRET", "s3cret")
    resource = program(
        ECHO,
        "{source}",
        "-size",
        "{width}x{width}",
        arguments={"source": {"type": "string"}, "width": {"type": "integer"}},
        environment={"API_KEY": Secret("k-4711-k")},
    )
    result = await ran(resource, arguments={"source": "a b; $(id) 'x'", "width": 3}, stdin="größe", output="json")
    argv, stdin, environment, directory = result["json"]
    assert argv == ["a b; $(id) 'x'", "-size", "3x3"]
    assert stdin == "größe"
    assert environment.keys() - {"LC_CTYPE"} == {"PATH", "LANG", "TMPDIR", "HOME", "API_KEY"}
    assert (environment["API_KEY"], environment["HOME"]) == ("k-4711-k", directory)
    assert not Path(directory).exists()


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "string"}, "-rf", "begins with `-`"),
        ({"type": "integer"}, -1, "begins with `-`"),
        ({"type": "string"}, "a\0b", "NUL"),
        ({"type": "string"}, "\ud800", "Unicode"),
        ({"type": "string"}, 7, "expected text"),
        ({"type": "array"}, ["a"], "a text or a number"),
        ({"pattern": "^[a-z]+$"}, "A", "does not match"),
    ],
)
async def test_argument_that_does_not_fit_is_refused(schema: dict[str, Any], value: Any, message: str) -> None:
    error = await failure(program(ECHO, "{a}", arguments={"a": schema}), arguments={"a": value})
    assert (error.retryable, error.error_code) == (False, "invalid_inputs")
    assert message in error.message


async def test_dash_is_allowed_by_a_pattern_and_inside_of_an_argument() -> None:
    listed = program(ECHO, "{a}", arguments={"a": {"enum": ["-v", "-q"]}})
    assert (await ran(listed, arguments={"a": "-v"}, output="json"))["json"][0] == ["-v"]
    inside = program(ECHO, "--name={a}", arguments={"a": {"type": "string"}})
    assert (await ran(inside, arguments={"a": "-v"}, output="json"))["json"][0] == ["--name=-v"]


@pytest.mark.parametrize("arguments", [{}, {"a": "x", "b": "y"}])
async def test_arguments_are_those_of_the_configuration(arguments: dict[str, Any]) -> None:
    error = await failure(program(ECHO, "{a}", arguments={"a": {}}), arguments=arguments)
    assert error.error_code == "invalid_inputs"


@pytest.mark.parametrize(
    ("code", "settings", "inputs", "retryable", "error_code"),
    [
        ("import sys; sys.exit('no such file')", {}, {}, False, "exit_1"),
        ("import sys; sys.exit(75)", {"retry_on": [75]}, {}, True, "exit_75"),
        ("import os; os.kill(os.getpid(), 9)", {}, {}, True, "command_signalled"),
        ("import time; time.sleep(60)", {"timeout_seconds": 0.2}, {}, True, "command_timeout"),
        ("while True: print('x' * 1000)", {"output_bytes": 5000}, {}, False, "output_too_large"),
        ("print('{')", {}, {"output": "json"}, False, "invalid_output"),
        ("", {}, {"expect": [3]}, False, "exit_0"),
    ],
)
async def test_failures_are_classified(
    code: str, settings: dict[str, Any], inputs: dict[str, Any], retryable: bool, error_code: str
) -> None:
    error = await failure(program(code, **settings), **inputs)
    assert (error.retryable, error.error_code) == (retryable, error_code)
    assert "no such file" in error.message or error_code != "exit_1"


async def test_expected_exit_code_is_a_result_and_the_last_of_the_error_output_is_kept() -> None:
    code = "import sys; sys.stderr.write('a' * 5000 + 'end'); sys.exit(3)"
    result = await ran(program(code, output_bytes=1000), expect=[0, 3])
    assert (result["exit_code"], len(result["stderr"]), result["stderr"][-3:]) == (3, 1000, "end")


async def test_program_that_cannot_be_started_is_a_permanent_failure(tmp_path: Path) -> None:
    error = await failure(make_command({"argv": [str(tmp_path / "missing")]}))
    assert (error.retryable, error.error_code) == (False, "command_not_started")


CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(600)"],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
open(sys.argv[1], "w").write(str(child.pid))
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
@pytest.mark.parametrize("waits", [False, True])
async def test_children_of_the_program_end_with_it(tmp_path: Path, waits: bool) -> None:
    file = tmp_path / "pid"
    code = CHILD + ("time.sleep(600)" if waits else "")
    running = asyncio.ensure_future(ran(program(code, str(file))))
    if waits:
        while not (file.exists() and file.read_text()):
            await asyncio.sleep(0.01)
        running.cancel()
    await asyncio.wait([running])
    pid, until = int(file.read_text()), time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < until:
        await asyncio.sleep(0.01)
    assert not is_alive(pid)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "argv"),
        ({"argv": ["ls"]}, "absolute path"),
        ({"argv": ["/bin/{x}"], "arguments": {"x": {}}}, "absolute path"),
        ({"argv": ["/bin/ls", "{x}"]}, "arguments has no 'x'"),
        ({"argv": ["/bin/ls"], "arguments": {"x": {}}}, "argv does not use {x}"),
        ({"argv": ["/bin/ls", "{x}"], "arguments": {"x": {"type": "strng"}}}, "JSON Schema"),
        ({"argv": ["/bin/ls"], "shell": True}, "unknown key 'shell'"),
        ({"argv": ["/bin/ls"], "directory": "/no/such"}, "no folder"),
        ({"argv": ["/bin/ls"], "timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_mistake_of_the_configuration_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make_command(settings)
    assert message in refused.value.message

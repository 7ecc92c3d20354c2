"""Plugin `command`: the step `tasker.command` runs a program that the configuration of the worker defines."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import ConfigurationError, PermanentError, RetryableError
from tasker.handlers.builtin import INVALID_INPUTS, BuiltinHandler, seconds_left
from tasker.handlers.context import StepContext
from tasker.handlers.results import StepHandlerResult
from tasker.plugins.hooks import hookimpl
from tasker.resources.tables import number_of, refuse_unknown, revealed
from tasker.template.builtin import BUILTIN, COMMAND
from tasker.template.schema_check import check_result, schema_problems

PLACEHOLDER = re.compile(r"\{(\w+)\}")
SCRATCH = "scratch"
"""Value of `directory` for a new folder for each attempt."""
GRACE_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL."""
MOST_SHOWN = 500
"""Characters of the error output that a failure shows."""
CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class CommandResource:
    """Program with a template of its arguments, and the limits of its execution."""

    argv: Sequence[str]
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = SCRATCH
    timeout_seconds: float = 60.0
    output_bytes: int = 65_536
    retry_on: frozenset[int] = frozenset()
    kind: str = "command"

    def argv_for(self, values: Mapping[str, Any]) -> list[str]:
        """Return the arguments of the program. Raises `PermanentError` for values that do not fit."""
        if unknown := sorted(values.keys() - self.arguments.keys()):
            takes = f"it takes {', '.join(sorted(self.arguments)) or 'none'}"
            raise PermanentError(f"unknown argument {unknown[0]!r}: {takes}", error_code=INVALID_INPUTS)
        for name, schema in self.arguments.items():
            if name not in values:
                raise PermanentError(f"the argument {name!r} is missing", error_code=INVALID_INPUTS)
            if mismatches := check_result(schema, values[name]):
                raise PermanentError(f"the argument {name!r}: {mismatches[0].message}", error_code=INVALID_INPUTS)
        texts = {name: _text_of(name, values[name]) for name in self.arguments}
        return [self._filled(part, texts) for part in self.argv]

    def _filled(self, part: str, texts: Mapping[str, str]) -> str:
        filled = PLACEHOLDER.sub(lambda match: texts[match[1]], part)
        first = PLACEHOLDER.match(part)
        if first is not None and filled.startswith("-") and not _is_listed(self.arguments[first[1]]):
            message = f"the argument {first[1]!r} begins with `-`, which the program would read as an option"
            hint = "give the argument a `pattern` or an `enum` in the configuration that allows it"
            raise PermanentError(message, error_code=INVALID_INPUTS, hint=hint)
        return filled


def _is_listed(schema: Mapping[str, Any]) -> bool:
    return not schema.keys().isdisjoint(("pattern", "enum", "const"))


def _text_of(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise PermanentError(f"the argument {name!r}: expected a text or a number", error_code=INVALID_INPUTS)
    text = str(value)
    if "\0" in text:
        raise PermanentError(f"the argument {name!r} contains a NUL character", error_code=INVALID_INPUTS)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PermanentError(f"the argument {name!r} is not valid Unicode", error_code=INVALID_INPUTS) from None
    return text


def make_command(settings: Mapping[str, Any]) -> CommandResource:
    """Make the resource of a table. Raises `ConfigurationError`."""
    refuse_unknown("command", settings)
    argv, arguments = settings.get("argv"), settings.get("arguments", {})
    if not isinstance(argv, list | tuple) or not argv or not all(isinstance(part, str) for part in argv):
        raise ConfigurationError(f"argv: expected a list of texts, got {argv!r}")
    if not Path(argv[0]).is_absolute() or PLACEHOLDER.search(argv[0]):
        raise ConfigurationError(f"argv: expected the absolute path of a program, got {argv[0]!r}")
    if not isinstance(arguments, Mapping):
        raise ConfigurationError(f"arguments: expected a table, got {arguments!r}")
    for name, schema in arguments.items():
        if not isinstance(schema, Mapping) or schema_problems(schema):
            raise ConfigurationError(f"arguments.{name}: expected a JSON Schema, got {schema!r}")
    used = {name for part in argv for name in PLACEHOLDER.findall(part)}
    if used != arguments.keys():
        name = sorted(used ^ arguments.keys())[0]
        lacks = f"arguments has no {name!r}" if name in used else f"argv does not use {{{name}}}"
        raise ConfigurationError(lacks, hint="each {name} in argv is a key of arguments")
    retry_on = settings.get("retry_on", ())
    if not isinstance(retry_on, list | tuple) or not all(isinstance(code, int) for code in retry_on):
        raise ConfigurationError(f"retry_on: expected a list of exit codes, got {retry_on!r}")
    directory = settings.get("directory", SCRATCH)
    if directory != SCRATCH and not Path(str(directory)).is_dir():
        raise ConfigurationError(
            f"directory: {directory!r} is no folder", hint='write an existing folder, or "scratch"'
        )
    return CommandResource(
        tuple(argv),
        arguments,
        {str(name): revealed(value) for name, value in settings.get("environment", {}).items()},
        str(directory),
        number_of(settings, "timeout_seconds", 60),
        int(number_of(settings, "output_bytes", 65_536)),
        frozenset(retry_on),
    )


class RunCommand(BuiltinHandler):
    """Runs a command of the configuration, without a shell, in an environment that inherits nothing but PATH."""

    handler_name = COMMAND
    step = BUILTIN[COMMAND]

    async def call(self, context: StepContext) -> StepHandlerResult:
        """Return exit code and output. An exit code that is not expected, a timeout and a signal are failures."""
        inputs = self.inputs(context)
        command = context.resource(inputs["resource"])
        if not isinstance(command, CommandResource):
            raise PermanentError(f"the resource `{inputs['resource']}` is not of the kind command")
        argv = command.argv_for(inputs.get("arguments", {}))
        seconds = seconds_left(context)
        limit = command.timeout_seconds if seconds is None else min(seconds, command.timeout_seconds)
        code, stdout, stderr = await _run(command, argv, inputs.get("stdin"), limit)
        text = stderr.decode(errors="replace")
        if code not in inputs.get("expect", (0,)):
            raise _failure(command, code, text)
        return self.success({"exit_code": code, "stderr": text, **_answer(stdout, inputs.get("output", "text"))})


def _failure(command: CommandResource, code: int, stderr: str) -> Exception:
    """Return the failure that an exit code stands for; a negative one is that of a signal."""
    shown = stderr[-MOST_SHOWN:].strip()
    if code < 0:
        return RetryableError(f"ended by signal {-code}: {shown}".rstrip(": "), error_code="command_signalled")
    error = RetryableError if code in command.retry_on else PermanentError
    return error(f"exit code {code}: {shown}".rstrip(": "), error_code=f"exit_{code}")


def _answer(stdout: bytes, output: str) -> dict[str, Any]:
    if output == "text":
        return {"stdout": stdout.decode(errors="replace")}
    try:
        return {"json": json.loads(stdout)}
    except ValueError as error:
        raise PermanentError(f"the output is not JSON: {error}", error_code="invalid_output") from None


async def _run(
    command: CommandResource, argv: Sequence[str], stdin: str | None, limit: float
) -> tuple[int, bytes, bytes]:
    scratch = await asyncio.to_thread(tempfile.mkdtemp, prefix="tasker-command-")
    try:
        return await _run_in(command, argv, stdin, limit, scratch)
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


async def _run_in(
    command: CommandResource, argv: Sequence[str], stdin: str | None, limit: float, scratch: str
) -> tuple[int, bytes, bytes]:
    inherited = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "TMPDIR": scratch, "HOME": scratch}
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else pipe,
            stdout=pipe,
            stderr=pipe,
            env={**inherited, **command.environment},
            cwd=scratch if command.directory == SCRATCH else command.directory,
            start_new_session=True,
        )
    except OSError as error:
        code = "command_not_started"
        raise PermanentError(f"{argv[0]} cannot be started: {error.strerror}", error_code=code) from None
    try:
        async with asyncio.timeout(limit):
            return await _exchange(process, stdin, command.output_bytes)
    except TimeoutError:
        raise RetryableError(f"not finished within {limit:g} seconds", error_code="command_timeout") from None
    finally:
        await asyncio.shield(_end(process))


async def _exchange(process: asyncio.subprocess.Process, stdin: str | None, most: int) -> tuple[int, bytes, bytes]:
    assert process.stdout is not None
    assert process.stderr is not None
    writing = asyncio.ensure_future(_write(process, stdin))
    errors = asyncio.ensure_future(_last(process.stderr, most))
    try:
        stdout = await _first(process.stdout, most)
        return await process.wait(), stdout, await errors
    finally:
        writing.cancel()
        errors.cancel()


async def _write(process: asyncio.subprocess.Process, stdin: str | None) -> None:
    if process.stdin is None or stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # the program does not read its input
        process.stdin.write(stdin.encode(errors="replace"))
        await process.stdin.drain()
        process.stdin.close()


async def _first(stream: asyncio.StreamReader, most: int) -> bytes:
    """Return the whole output. Raises `PermanentError` if it has more than `most` bytes."""
    output = bytearray()
    while chunk := await stream.read(CHUNK):
        output += chunk
        if len(output) > most:
            hint = "raise output_bytes of the resource, or let the program write a file"
            message = f"the output has more than {most:,} bytes"
            raise PermanentError(message, error_code="output_too_large", hint=hint)
    return bytes(output)


async def _last(stream: asyncio.StreamReader, most: int) -> bytes:
    """Return the last `most` bytes of the output."""
    output = bytearray()
    while chunk := await stream.read(CHUNK):
        output += chunk
        del output[:-most]
    return bytes(output)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program and everything that it has started in its process group."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    _signal(process, signal.SIGKILL)
    await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@hookimpl
def tasker_handlers() -> list[type[BuiltinHandler]]:
    """Return the handler."""
    return [RunCommand]

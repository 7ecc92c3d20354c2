"""Input of `tasker run` from options and files, and its JSON output."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn, TextIO

from tasker.dataclasses import dataclass
from tasker.errors import TaskerError, UsageError
from tasker.services.operators.changed_input import put_value

INPUT_FILE = "input.json"


@dataclass(frozen=True, slots=True)
class TaskInput:
    """Input of a task and a description of its source.

    `parsed` holds the `--set` options whose text was read as JSON and is not a string.
    """

    values: dict[str, Any]
    source: str
    parsed: dict[str, str] = field(default_factory=dict)


def read_input(
    given: str | None, settings: Sequence[str], *, folder: Path | None, read_stdin: Callable[[], str]
) -> TaskInput:
    """Read the input of a task.

    `given` is JSON, `@FILE` or `-` (standard input); without it the `input.json` of `folder` is used if it exists.
    `settings` are KEY=VALUE pairs, applied in order. Raises `UsageError` with the position of the error.
    """
    values, source = _base(given, folder, read_stdin)
    parsed = put_settings(values, settings)
    names = ", ".join(dict.fromkeys(setting.partition("=")[0] for setting in settings))
    return TaskInput(values, f"{source} with {names} set" if settings else source, parsed)


def put_settings(values: dict[str, Any], settings: Sequence[str]) -> dict[str, str]:
    """Apply KEY=VALUE pairs to `values`, in order; return those whose text was read as JSON and is not a string.

    Raises `UsageError`.
    """
    parsed: dict[str, str] = {}
    for setting in settings:
        key, value, text = _parse_setting(setting)
        put_value(values, key, value, f"--set {setting}")
        if not isinstance(value, str):
            parsed[key] = text
    return parsed


def settings_by_path(settings: Sequence[str]) -> dict[str, Any]:
    """Return the values of KEY=VALUE pairs by their keys. Raises `UsageError`."""
    return {key: value for key, value, _ in map(_parse_setting, settings)}


def _base(given: str | None, folder: Path | None, read_stdin: Callable[[], str]) -> tuple[dict[str, Any], str]:
    if given is None:
        file = folder / INPUT_FILE if folder else None
        return (_object(_read(file), str(file)), str(file)) if file and file.exists() else ({}, "{}")
    named = {"-": "standard input"}.get(given, given[1:] if given.startswith("@") else "--input")
    return read_object(given, "--input", read_stdin=read_stdin), named


def read_object(given: str, option: str, *, read_stdin: Callable[[], str]) -> dict[str, Any]:
    """Read the object of an option given as JSON, as `@FILE`, or as `-` for standard input. Raises `UsageError`."""
    if given == "-":
        return _object(read_stdin(), "standard input")
    if given.startswith("@"):
        return _object(_read(Path(given[1:])), given[1:])
    return _object(given, option, hint=_file_hint(given, option))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"the input file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the input file {file} is not UTF-8") from None


_KINDS = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}


def _object(text: str, source: str, hint: str | None = None) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{source} is not JSON: {_location_text(text, error)}", hint=hint or _json_hint(text)
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source} cannot be used: {error}") from None
    if not isinstance(value, dict):
        kind = _KINDS[type(value)]
        raise UsageError(f"{source} is {kind}, expected an object", hint='for example {"name": "world"}')
    return value


def _location_text(text: str, error: json.JSONDecodeError) -> str:
    """Render `message at line:column`, the line, and a caret below the column."""
    if not text.strip():
        return "it is empty"
    line = (text.splitlines() or [""])[min(error.lineno, len(text.splitlines())) - 1]
    start = max(0, error.colno - 60)
    return (
        f"{error.msg.lower()} at line {error.lineno}, column {error.colno}\n"
        f"  {line[start : start + 100]}\n  {' ' * (error.colno - 1 - start)}^"
    )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these members, as a hook of `json.loads`. Raises `ValueError` for a repeated key."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key '{next(name for name in names if names.count(name) > 1)}' occurs twice")
    return members


def _file_hint(given: str, option: str) -> str | None:
    return f"to read the file, write {option} @{given}" if len(given) < 256 and Path(given).is_file() else None


def _json_hint(text: str) -> str | None:
    return (
        'JSON requires double quotes: {"name": "world"}; quote it for the shell with \'...\'' if "'" in text else None
    )


def _parse_setting(setting: str) -> tuple[str, Any, str]:
    key, separator, text = setting.partition("=")
    if not separator or not all(key.split(".")):
        raise UsageError(
            f"--set {setting} is not KEY=VALUE",
            hint="for example --set name=world, --set retries=2, --set customer.id=C-7",
        )
    try:
        return key, json.loads(text, parse_constant=_refuse, object_pairs_hook=without_repeats), text
    except (ValueError, RecursionError):
        return key, text, text


@contextlib.contextmanager
def reserved_stdout() -> Iterator[TextIO]:
    """Yield the stream for the object; everything else written to standard output goes to standard error."""
    out, descriptor = sys.stdout, _descriptor(sys.stdout)
    copy = os.dup(descriptor) if descriptor == 1 else None
    if copy is not None:  # child processes of handlers write to the descriptor directly
        out.flush()
        os.dup2(2, 1)
        out = os.fdopen(copy, "w", encoding="utf-8")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield out
    finally:
        try:
            out.flush()
        finally:
            if copy is not None:
                os.dup2(copy, 1)
                with contextlib.suppress(OSError):  # the flush above has raised this error already
                    out.close()


def write_json(out: TextIO, value: Any) -> None:
    """Write the object on one line."""
    out.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
    out.flush()


def error_object(error: TaskerError) -> dict[str, Any]:
    """Return the object that is printed if there is no task to report on."""
    known = error.to_dict()
    details = {
        key: known[key] for key in known.keys() - {"error_class", "error_type", "error_code", "metadata", "context"}
    }
    fixed = {"type": error.error_type, "message": error.message, "code": error.error_code, "retryable": error.retryable}
    return {"error": fixed | details}


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, io.UnsupportedOperation):
        return None

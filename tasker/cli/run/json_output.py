"""Output of `tasker run --json`: one object on standard output and nothing else, whatever handlers print."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from tasker.errors import TaskerError


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

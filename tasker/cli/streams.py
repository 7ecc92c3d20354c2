"""Handling of closed or failing standard streams: one line and exit code 1, never a traceback."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

import click

FAILED = 1
CANNOT_BE_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def open_closed_streams() -> None:
    """Open closed standard streams (`>&-`) before a file or a connection takes their descriptors.

    Writing to such a standard output fails, as before; output to such a standard error is dropped.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(opened := os.open(os.devnull, mode), descriptor)
            if opened > 2:
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  # for as long as the process lives
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


@contextlib.contextmanager
def output_errors() -> Iterator[None]:
    """Report output that cannot be written in one line on standard error, and exit with 1.

    If the reader is gone (`| head`), click exits silently.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if os.environ.get("TASKER_DEBUG") == "1" or error.errno not in CANNOT_BE_WRITTEN:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the buffered rest would fail again at exit
        with contextlib.suppress(OSError):
            click.echo("\n".join([f"Error: cannot write the output: {error.strerror}", *_notes(error)]), err=True)
        sys.exit(FAILED)


def _notes(error: OSError) -> list[str]:
    """Return the notes of the error or of the one before it: output that failed once fails again when it is flushed."""
    return [note for each in (error.__context__, error) for note in getattr(each, "__notes__", ())]

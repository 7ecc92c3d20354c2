"""File of the journal."""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

CHECK_SECONDS = 1.0
"""Interval of the check whether the file was moved away."""
MOST_BYTES = 64_000
"""Maximum size of the buffer. Lines are written together, because a system call for each costs more than the line."""


class Journal:
    """File to which several processes may append whole lines at the same time.

    Rotation moves the file away: within a second the lines go to a new one. One thread at a time may use it.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Open the file. Raises `OSError` if it cannot be opened for appending."""
        self._path = Path(path).expanduser().absolute()  # a handler may change the working directory of the process
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._clock, self._checked_at = clock, clock()
        self._lines, self._size = list[bytes](), 0
        self._open()

    def add(self, line: Mapping[str, Any]) -> None:
        """Buffer a line until the next `flush`, or flush if the buffer is full. Raises `OSError` like `flush`."""
        text = encoded(line)
        self._lines.append(text)
        self._size += len(text)
        if self._size >= MOST_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered lines. Raises `OSError` if that fails; then the lines are lost."""
        lines, self._lines, self._size = self._lines, [], 0
        if lines:
            self._check()
            write_all(self._file, b"".join(lines))

    def _check(self) -> None:
        if self._clock() - self._checked_at >= CHECK_SECONDS:
            self._checked_at = self._clock()
            if not self._is_there():
                self._closing()
                self._open()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._closing = weakref.finalize(self, os.close, self._file)

    def _is_there(self) -> bool:
        try:
            path_stat = os.stat(self._path)
        except FileNotFoundError:
            return False
        file_stat = os.fstat(self._file)
        return (path_stat.st_dev, path_stat.st_ino) == (file_stat.st_dev, file_stat.st_ino)


def encoded(line: Mapping[str, Any]) -> bytes:
    """Return a line as JSON in UTF-8, with a newline."""
    try:
        return orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # surrogates, or numbers of more than 64 bits
        return (json.dumps(line, ensure_ascii=False, default=str, separators=(",", ":")) + "\n").encode(
            "utf-8", "backslashreplace"
        )


def write_all(file: int, content: bytes) -> None:
    """Write all bytes: the system may accept a part of them if the disk is nearly full. Raises `OSError`."""
    while content:
        content = content[os.write(file, content) :]

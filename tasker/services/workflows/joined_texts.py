"""Template files as one text, as a server takes them, and where each of its lines is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.services.workflows.files import find_templates


@dataclass(frozen=True, slots=True)
class JoinedTexts:
    """YAML documents of several files; `starts` are the line numbers at which the text of each file begins."""

    text: str
    files: Sequence[str]
    starts: Sequence[int]

    def place(self, line: int) -> tuple[str, int]:
        """Return the file and the line in it for a line of the text, both counted from 1."""
        number = max(0, bisect_right(self.starts, line) - 1)
        return self.files[number], max(1, line - self.starts[number] + 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the texts as plain data."""
        return {"text": self.text, "files": list(self.files), "starts": list(self.starts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JoinedTexts:
        """Restore the texts that `to_dict` wrote. Raises `KeyError` or `TypeError` for other data."""
        files, starts = [str(file) for file in data["files"]], [int(start) for start in data["starts"]]
        if not isinstance(data["text"], str) or not files or len(files) != len(starts):
            raise TypeError("expected a text, and a line for each file")
        return cls(data["text"], files, starts)


def join_files(paths: Iterable[str | Path]) -> JoinedTexts:
    """Return the templates of files and folders as one text (see `find_templates`), each file once.

    Raises `UsageError` if there is nothing to read.
    """
    files = list(dict.fromkeys(file for path in paths for file in find_templates(path)))
    text, starts, line = "", [], 1
    for file in files:
        try:
            content = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} cannot be read: {error}") from error
        if not content.startswith("---"):
            text, line = f"{text}---\n", line + 1
        starts.append(line)
        content += "" if content.endswith("\n") else "\n"
        text, line = text + content, line + content.count("\n")
    return JoinedTexts(text, [str(file) for file in files], starts)

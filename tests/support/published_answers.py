"""Asks an implementation of tasker_core questions, and writes answers as plain data.

`python -m tests.support.published_answers FILE` asks the questions of the file again and writes it with the answers of
the package that is installed. Texts of errors are left out: they are each package's own.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from pydantic import BaseModel

from tests.support.published_shop import namespace

Answers: TypeAlias = dict[str, list[list[Any]]]
LEFT_OUT = {"error_message", "traceback", "headers", "content-length"}


def asked(questions: list[str], folder: Path) -> list[list[Any]]:
    """The questions of one part in order, each with its answer; they share what they make, and an empty folder."""
    names = namespace(folder)
    return [[question, ask(question, names)] for question in questions]


def ask(question: str, names: dict[str, Any]) -> Any:
    """The value of the expression, or the name of what it raises."""
    try:
        return plain(eval(question, names), str(names["folder"]))
    except Exception as error:
        return {"raises": type(error).__name__}


def plain(value: Any, folder: str) -> Any:
    """A value as JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, BaseModel):
        value = {"is": type(value).__name__, **value.model_dump()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {"is": type(value).__name__, **dataclasses.asdict(value)}
    if isinstance(value, dict):
        return {str(key): plain(found, folder) for key, found in value.items() if key not in LEFT_OUT}
    if isinstance(value, (list, tuple)):
        return [plain(found, folder) for found in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value).replace(folder, "FOLDER") if isinstance(value, (str, Path)) else type(value).__name__


def as_json(answers: Answers) -> str:
    """One line for each question."""
    parts = []
    for part, pairs in answers.items():
        lines = ",\n".join(f"  {json.dumps(pair, sort_keys=True)}" for pair in pairs)
        parts.append(f" {json.dumps(part)}: [\n{lines}\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def answered_again(known: Answers) -> Answers:
    """The same questions with the answers of the package that is installed."""
    found: Answers = {}
    for part, pairs in known.items():
        with TemporaryDirectory() as folder:
            found[part] = asked([question for question, _ in pairs], Path(folder))
    return found


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(as_json(answered_again(json.loads(file.read_text("utf-8")))), encoding="utf-8")

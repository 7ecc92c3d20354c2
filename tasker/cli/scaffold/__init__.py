"""Files of a new workflow (`tasker new`), from `files/`, where `@NAME@` stands for the workflow's name."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from tasker.errors import UsageError

FILES = Path(__file__).parent / "files"
CONTENTS = {
    "workflow.yaml": "the template: steps and their dependencies",
    "handlers.py": "the code that the steps run",
    "input.json": "the default input of `tasker run`",
    "@NAME@.scenario.yaml": "tests without a database, as cases",
    "test_@NAME@.py": "a test that runs the workflow",
}


def write_workflow(name: str, parent: Path) -> dict[str, str]:
    """Create the folder `parent/name` with a runnable workflow; return its files with a description of each.

    Raises `UsageError` for a name that is invalid for a template or a Python module, or if the folder exists.
    """
    check_name(name)
    folder = parent / name
    make_folder(folder, folder)
    return {_write(file, name, folder): what for file, what in CONTENTS.items()}


def make_folder(folder: Path, whole: Path) -> None:
    """Create the folder and its parents. Raises `UsageError`, naming `whole`, if that fails or the folder exists."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(
            f"{whole} already exists; nothing was written", hint="choose another name, or another --dir"
        ) from None
    except OSError as error:
        raise UsageError(f"{whole} cannot be created: {error.strerror}") from None


def _write(file: str, name: str, folder: Path) -> str:
    text = (FILES / f"{file.replace('@NAME@', 'workflow')}.txt").read_text(encoding="utf-8")
    target = folder / file.replace("@NAME@", name)
    target.write_text(text.replace("@NAME@", name), encoding="utf-8")
    return target.name


def check_name(name: str, what: str = "a workflow") -> None:
    """Raise `UsageError` for an invalid name of a Python module, with a valid proposal."""
    if re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name) and not keyword.iskeyword(name):
        return
    proposal = re.sub(r"[^a-z0-9]+", "_", Path(name).name.lower()).strip("_")
    usable = re.fullmatch(r"[a-z][a-z0-9_]{0,62}", proposal) and not keyword.iskeyword(proposal)
    raise UsageError(
        f"{name!r} is not a valid name of {what}: use lowercase letters, digits and underscores, beginning with a "
        f"letter",
        hint=f"try {proposal}" + (" with --dir" if "/" in name else "") if usable else None,
    )

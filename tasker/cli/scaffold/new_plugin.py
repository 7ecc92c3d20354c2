"""Files of a new plugin (`tasker new plugin`), from `plugin/`, where `@NAME@` stands for the plugin's name."""

from __future__ import annotations

from pathlib import Path

from tasker.cli.scaffold import check_name, make_folder

FILES = Path(__file__).parent / "plugin"
CONTENTS = {
    "pyproject.toml": ("pyproject.toml", "build and entry point"),
    "README.md": ("README.md", "description"),
    "tasker_@NAME@/__init__.py": ("plugin.py", "the hooks, a setting and a metric"),
    "test_@NAME@.py": ("test_plugin.py", "its test"),
}


def write_plugin(name: str, parent: Path) -> tuple[Path, dict[str, str]]:
    """Create the folder `parent/tasker-NAME` with an installable plugin; return it and its files with descriptions.

    Raises `UsageError` for a name that is invalid for a Python module, or if the folder exists.
    """
    check_name(name, "a plugin")
    folder = parent / f"tasker-{name.replace('_', '-')}"
    make_folder(folder / f"tasker_{name}", folder)
    return folder, {_write(file, source, name, folder): what for file, (source, what) in CONTENTS.items()}


def _write(file: str, source: str, name: str, folder: Path) -> str:
    text = (FILES / f"{source}.txt").read_text(encoding="utf-8")
    target = file.replace("@NAME@", name)
    text = text.replace("@NAME@", name).replace("@DASHED@", name.replace("_", "-"))
    (folder / target).write_text(text, encoding="utf-8")
    return target

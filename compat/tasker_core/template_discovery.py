"""Templates in a folder, and the handlers that they name. An unreadable file has none."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

__all__ = ["HandlerDiscovery", "TemplateParser", "TemplatePath"]

WORKSPACE_MARKERS = (
    "Cargo.toml",
    "pyproject.toml",
    ".git",
    "Gemfile",
    "package.json",
    "tasker-core.code-workspace",
)
"""Files and folders in the root of a project."""

TEMPLATES = Path("config", "tasks")
TEST_TEMPLATES = Path("tests", "fixtures", "task_templates", "python")
WORKSPACE_DEPTH = 10
USUAL_FOLDERS = ("config/tasker/templates", "config/tasks", "workflows")
SUFFIXES = (".yaml", ".yml")

log = logging.getLogger("tasker.templates")


class TemplatePath:
    """Paths of templates."""

    @staticmethod
    def find_template_config_directory() -> Path | None:
        """Return the first existing folder of templates.

        The candidates are `TASKER_TEMPLATE_PATH`; in the environment `test` the fixtures of the project; `config/tasks`
        below `WORKSPACE_PATH`, the project's root and the working directory; the engine's usual folders.
        """
        folder = next((place for place in _places() if place.is_dir()), None)
        return folder or (None if "TASKER_TEMPLATE_PATH" in os.environ else usual_folder())

    @staticmethod
    def discover_template_files(template_dir: Path) -> list[Path]:
        """Return every YAML file in the folder and below, sorted; none for a missing folder."""
        return sorted(path for path in template_dir.rglob("*") if path.suffix in SUFFIXES and path.is_file())


class TemplateParser:
    """Parser of templates as plain data."""

    @staticmethod
    def extract_handler_callables(template_file: Path) -> list[str]:
        """Return the callables that the file's steps name, in order."""
        return TemplateParser.extract_handlers_from_template(_read(template_file))

    @staticmethod
    def extract_handlers_from_template(template_data: dict[str, Any]) -> list[str]:
        """Return the callables of one template's steps, in order."""
        steps = template_data.get("steps")
        handlers = [step.get("handler") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
        callables = [handler.get("callable") for handler in handlers if isinstance(handler, dict)]
        return [name for name in callables if isinstance(name, str) and name]

    @staticmethod
    def extract_template_metadata(template_file: Path) -> dict[str, Any]:
        """Return name, namespace, version, description, file and callables; empty for an invalid template."""
        data = _read(template_file)
        if not data:
            return {}
        return {
            "name": data.get("name", ""),
            "namespace": data.get("namespace_name") or data.get("namespace") or "",
            "version": data.get("version", ""),
            "description": data.get("description", ""),
            "file_path": str(template_file),
            "handlers": TemplateParser.extract_handlers_from_template(data),
        }


class HandlerDiscovery:
    """Handlers and metadata of all templates in a folder."""

    @staticmethod
    def discover_all_handlers(template_dir: Path) -> list[str]:
        """Return every callable that a template names, sorted."""
        files = TemplatePath.discover_template_files(template_dir)
        return sorted({name for file in files for name in TemplateParser.extract_handler_callables(file)})

    @staticmethod
    def discover_template_metadata(template_dir: Path) -> list[dict[str, Any]]:
        """Return the metadata of each template."""
        files = TemplatePath.discover_template_files(template_dir)
        return [known for known in map(TemplateParser.extract_template_metadata, files) if known]

    @staticmethod
    def discover_handlers_by_namespace(template_dir: Path) -> dict[str, list[str]]:
        """Return the callables of each namespace, sorted."""
        callables: dict[str, set[str]] = {}
        for template in HandlerDiscovery.discover_template_metadata(template_dir):
            callables.setdefault(template["namespace"], set()).update(template["handlers"])
        return {namespace: sorted(names) for namespace, names in callables.items()}


def usual_folder() -> Path | None:
    """Return `TASKER_TEMPLATE_PATH`, or the first existing one of the usual folders; None if there is none."""
    named = os.environ.get("TASKER_TEMPLATE_PATH")
    return next((Path(place) for place in ([named] if named else USUAL_FOLDERS) if Path(place).is_dir()), None)


def _places() -> Iterator[Path]:
    if named := os.environ.get("TASKER_TEMPLATE_PATH"):
        yield Path(named)
    root = _workspace_root()
    if os.environ.get("TASKER_ENV") == "test" and root:
        yield root / TEST_TEMPLATES
    if workspace := os.environ.get("WORKSPACE_PATH"):
        yield Path(workspace) / TEMPLATES
    if root:
        yield root / TEMPLATES
    yield Path.cwd() / TEMPLATES


def _workspace_root() -> Path | None:
    here = Path.cwd()
    around = [here, *here.parents][:WORKSPACE_DEPTH]
    return next((folder for folder in around if any((folder / name).exists() for name in WORKSPACE_MARKERS)), None)


def _read(file: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        log.warning("%s cannot be read: %s", file, error)
        return {}
    return data if isinstance(data, dict) else {}

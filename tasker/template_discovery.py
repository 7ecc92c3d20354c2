"""Templates in a folder and the handlers that they name, read without validation (the compiler validates)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tasker.errors import TemplateError

SUFFIXES = (".yaml", ".yml")


class TemplatePath:
    """Locations of templates."""

    @staticmethod
    def find_template_config_directory() -> Path | None:
        """Return `TASKER_TEMPLATE_PATH`, or the first existing one of three default folders; None if there is none."""
        named = os.environ.get("TASKER_TEMPLATE_PATH")
        places = [named] if named else ["config/tasker/templates", "config/tasks", "workflows"]
        return next((Path(place) for place in places if Path(place).is_dir()), None)

    @staticmethod
    def discover_template_files(template_dir: Path) -> list[Path]:
        """Return every YAML file in the folder and its subfolders, sorted."""
        return sorted(path for path in template_dir.rglob("*") if path.suffix in SUFFIXES and path.is_file())


class TemplateParser:
    """Reads templates as plain data. A file may contain several."""

    @staticmethod
    def extract_handler_callables(template_file: Path) -> list[str]:
        """Return the callables that the file names, each once. Raises `TemplateError` for invalid YAML."""
        callables = [TemplateParser.extract_handlers_from_template(data) for data in _documents(template_file)]
        return list(dict.fromkeys(name for names in callables for name in names))

    @staticmethod
    def extract_handlers_from_template(template_data: dict[str, Any]) -> list[str]:
        """Return the callables of one template's steps, each once, in order."""
        steps = template_data.get("steps") or []
        names = [_callable(step.get("handler")) for step in steps if isinstance(step, dict)]
        return list(dict.fromkeys(name for name in names if name))

    @staticmethod
    def extract_template_metadata(template_file: Path) -> dict[str, Any]:
        """Return name, namespace, version, description, file and callables of the file's first template."""
        data = next(_documents(template_file), {})
        return _metadata(data, template_file)


class HandlerDiscovery:
    """Discovery over a whole folder."""

    @staticmethod
    def discover_all_handlers(template_dir: Path) -> list[str]:
        """Return every callable that a template names, sorted."""
        files = TemplatePath.discover_template_files(template_dir)
        return sorted({name for file in files for name in TemplateParser.extract_handler_callables(file)})

    @staticmethod
    def discover_template_metadata(template_dir: Path) -> list[dict[str, Any]]:
        """Return the metadata of each template, file by file."""
        files = TemplatePath.discover_template_files(template_dir)
        return [_metadata(data, file) for file in files for data in _documents(file)]

    @staticmethod
    def discover_handlers_by_namespace(template_dir: Path) -> dict[str, list[str]]:
        """Return the callables of each namespace, sorted."""
        return callables_by_namespace(HandlerDiscovery.discover_template_metadata(template_dir))


def callables_by_namespace(templates: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the callables of each namespace, sorted, from the metadata of templates."""
    callables: dict[str, set[str]] = {}
    for template in templates:
        callables.setdefault(template["namespace"], set()).update(template["handlers"])
    return {namespace: sorted(names) for namespace, names in callables.items()}


def _documents(file: Path) -> Iterator[dict[str, Any]]:
    """Return the documents of a file that have steps; other YAML files are not templates."""
    try:
        documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise TemplateError(f"{file} is not YAML: {error}") from None
    return (data for data in documents if isinstance(data, dict) and isinstance(data.get("steps"), list))


def _metadata(data: dict[str, Any], file: Path) -> dict[str, Any]:
    return {
        "name": data.get("name"),
        "namespace": data.get("namespace_name") or data.get("namespace") or "default",
        "version": None if data.get("version") is None else str(data["version"]),
        "description": data.get("description"),
        "file_path": str(file),
        "handlers": TemplateParser.extract_handlers_from_template(data),
    }


def _callable(handler: Any) -> str | None:
    name = handler.get("callable") if isinstance(handler, dict) else handler
    return name if isinstance(name, str) else None

"""Plugin `files`: steps that read, write, list and copy files below the root of a resource: local, S3 or GCS."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from tasker.dataclasses import dataclass
from tasker.errors import (
    AuthenticationError,
    ConfigurationError,
    NotFoundError,
    PermanentError,
    RetryableError,
    TaskerError,
)
from tasker.handlers.builtin import INVALID_INPUTS, BuiltinHandler
from tasker.handlers.context import StepContext
from tasker.handlers.results import StepHandlerResult
from tasker.plugins.hooks import hookimpl
from tasker.resources.tables import flag_of, number_of, refuse_unknown, revealed
from tasker.template.builtin import BUILTIN, COPY, LIST, READ, WRITE

FILE = "file"
PROTOCOLS = {FILE: "", "s3": "s3fs", "gs": "gcsfs", "memory": ""}
"""Permitted protocols, and the package of each; `memory` is for tests."""


@dataclass(frozen=True, slots=True)
class FilesResource:
    """Files below one root. `system` is a file system of fsspec."""

    system: Any
    root: str
    local: bool
    writable: bool = False
    max_bytes: int = 10 * 1024 * 1024
    max_files: int = 1000
    kind: str = "files"

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises the failure of a step."""
        with _failures(path):
            full = self._full(path)
            info = self.system.info(full)
            if info["type"] != "file":
                raise PermanentError(f"{path} is no file", error_code="not_a_file")
            self._check_size(path, info.get("size") or 0)
            with self.system.open(full, "rb") as file:
                content: bytes = file.read(self.max_bytes + 1)
            self._check_size(path, len(content))
            return content

    def write(self, path: str, content: bytes, replace: bool) -> None:
        """Write a file as a whole: readers see the old or the new content. Raises the failure of a step.

        Without `replace` an existing file is an error, unless it has this content: an earlier attempt may have
        written it.
        """
        if not self.writable:
            hint = "set writable = true in the table of the resource"
            raise PermanentError("the resource is read-only", error_code="read_only", hint=hint)
        self._check_size(path, len(content))
        with _failures(path):
            full = self._full(path)
            try:
                if self.local:
                    _write_local(Path(full), content, replace)
                elif not replace and self.system.exists(full):
                    raise FileExistsError(path)
                else:
                    self.system.pipe_file(full, content)
            except FileExistsError:
                if self.read(path) != content:
                    raise

    def list(self, path: str, recursive: bool) -> list[dict[str, Any]]:
        """Return path and size of the files below a folder, sorted by path. Raises the failure of a step."""
        with _failures(path):
            full = self._full(path) if path else self.root
            found = self.system.find(full, maxdepth=None if recursive else 1, detail=True)
            files = [
                {"path": name[len(self.root) :].lstrip("/"), "bytes": info.get("size") or 0}
                for name, info in sorted(found.items())
                if info["type"] == "file" and not info.get("islink")
            ]
        if len(files) > self.max_files:
            hint = "list a folder below it, or raise max_files of the resource"
            raise PermanentError(f"more than {self.max_files:,} files", error_code="too_many_files", hint=hint)
        return files

    def _full(self, path: str) -> str:
        """Return the path in the file system. Raises `PermanentError` for one that leaves the root."""
        parts = path.split("/")
        if "\\" in path or not path.isprintable() or any(part in ("", ".", "..") for part in parts):
            message = f"expected a path below the root, such as folder/name.json, got {path!r}"
            raise PermanentError(message, error_code="invalid_path")
        full = f"{self.root}/{path}"
        if self.local and os.path.realpath(full) != full:
            raise PermanentError(f"{path} leads through a symbolic link", error_code="invalid_path")
        return full

    def _check_size(self, path: str, size: int) -> None:
        if size > self.max_bytes:
            message = f"{path} has more than {self.max_bytes:,} bytes"
            raise PermanentError(message, error_code="file_too_large", hint="raise max_bytes of the resource")


def _write_local(file: Path, content: bytes, replace: bool) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{uuid4().hex}.part")
    try:
        temporary.write_bytes(content)
        if replace:
            temporary.replace(file)
        else:
            os.link(temporary, file)  # fails if the file exists
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def _failures(path: str) -> Iterator[None]:
    """Turn errors of a file system into failures of a step."""
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}", error_code="not_found") from None
    except FileExistsError:
        raise PermanentError(f"the file {path} exists", error_code="file_exists") from None
    except PermissionError as error:  # object stores report refused credentials so
        raise AuthenticationError(f"{path}: {error.strerror or 'access denied'}", error_code="access_denied") from None
    except (IsADirectoryError, NotADirectoryError):
        raise PermanentError(f"{path} is no file", error_code="not_a_file") from None
    except (ValueError, UnicodeError) as error:
        raise PermanentError(f"invalid path: {error}", error_code="invalid_path") from None
    except OSError as error:
        message = f"{path}: {error.strerror or type(error).__name__}"
        if error.strerror == os.strerror(36):  # ENAMETOOLONG
            raise PermanentError(message, error_code="invalid_path") from None
        raise RetryableError(message, error_code="files_unavailable") from None
    except (TaskerError, TypeError, KeyError, AttributeError):
        raise
    except Exception as error:  # each object store has exceptions of its own
        message = f"{path}: {type(error).__name__}: {error}"
        raise RetryableError(message, error_code="files_unavailable") from None


def make_files(settings: Mapping[str, Any]) -> FilesResource:
    """Make the resource of a table. Raises `ConfigurationError`."""
    refuse_unknown("files", settings)
    protocol, separator, rest = revealed(settings.get("url", "")).partition("://")
    if not separator or protocol not in PROTOCOLS or not rest.strip("/") or "::" in rest:
        expected = "file:///folder, s3://bucket/prefix or gs://bucket/prefix"
        raise ConfigurationError(f"url: expected {expected}, got {protocol}{separator}{rest}")
    options = settings.get("options", {})
    if not isinstance(options, Mapping):
        raise ConfigurationError(f"options: expected a table, got {options!r}")
    local = protocol == FILE
    root = os.path.realpath(rest) if local else rest.strip("/")
    if local and not Path(root).is_dir():
        raise ConfigurationError(f"url: {rest} is no folder", hint="create it")
    return FilesResource(
        _system(protocol, {key: _plain(value) for key, value in options.items()}),
        f"/{root}" if protocol == "memory" else root,
        local,
        flag_of(settings, "writable", False),
        int(number_of(settings, "max_bytes", 10 * 1024 * 1024)),
        int(number_of(settings, "max_files", 1000)),
    )


def _system(protocol: str, options: Mapping[str, Any]) -> Any:
    try:
        import fsspec  # needed for resources of this kind only

        return fsspec.filesystem(protocol, skip_instance_cache=True, use_listings_cache=False, **options)
    except ImportError as error:
        extra = {"s3": "s3", "gs": "gcs"}.get(protocol, "files")
        package = PROTOCOLS[protocol] or "fsspec"
        raise ConfigurationError(
            f"{protocol}:// needs {package}: {error}", hint=f'pip install "tasker-engine[{extra}]"'
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value if isinstance(value, bool | int | float | list) else revealed(value)


class _FilesHandler(BuiltinHandler):
    def resource(self, context: StepContext, name: str) -> FilesResource:
        """Return the resource of this name."""
        resource = context.resource(name)
        if not isinstance(resource, FilesResource):
            raise PermanentError(f"the resource `{name}` is not of the kind files")
        return resource


def _about(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


class ReadFile(_FilesHandler):
    """Reads a file. It runs in a thread, as the other steps here."""

    handler_name = READ
    step = BUILTIN[READ]

    def call(self, context: StepContext) -> StepHandlerResult:
        """Return the content as text, JSON or base64."""
        inputs = self.inputs(context)
        content = self.resource(context, inputs["resource"]).read(inputs["path"])
        return self.success({**_about(content), **_decoded(content, inputs.get("content", "text"))})


def _decoded(content: bytes, form: str) -> dict[str, Any]:
    if form == "base64":
        return {"base64": base64.b64encode(content).decode()}
    try:
        return {"text": content.decode()} if form == "text" else {"json": json.loads(content)}
    except ValueError as error:
        what = "UTF-8" if form == "text" else "JSON"
        raise PermanentError(f"the file is not {what}: {error}", error_code="invalid_content") from None


class WriteFile(_FilesHandler):
    """Writes a file."""

    handler_name = WRITE
    step = BUILTIN[WRITE]

    def call(self, context: StepContext) -> StepHandlerResult:
        """Write the content; a further attempt writes the same."""
        inputs = self.inputs(context)
        content = _encoded(inputs)
        resource = self.resource(context, inputs["resource"])
        resource.write(inputs["path"], content, inputs.get("replace", True))
        return self.success(_about(content))


def _encoded(inputs: Mapping[str, Any]) -> bytes:
    given = [key for key in ("text", "json", "base64") if key in inputs]
    if len(given) != 1:
        raise PermanentError("expected one of `text`, `json` and `base64`", error_code=INVALID_INPUTS)
    value = inputs[given[0]]
    try:
        if given == ["base64"]:
            return base64.b64decode(value, validate=True)
        return (value if given == ["text"] else json.dumps(value, ensure_ascii=False)).encode()
    except (binascii.Error, ValueError) as error:
        raise PermanentError(f"`{given[0]}`: {error}", error_code=INVALID_INPUTS) from None


class ListFiles(_FilesHandler):
    """Lists files."""

    handler_name = LIST
    step = BUILTIN[LIST]

    def call(self, context: StepContext) -> StepHandlerResult:
        """Return path and size of each file."""
        inputs = self.inputs(context)
        resource = self.resource(context, inputs["resource"])
        return self.success({"files": resource.list(inputs.get("path", ""), inputs.get("recursive", False))})


class CopyFile(_FilesHandler):
    """Copies a file, also between resources."""

    handler_name = COPY
    step = BUILTIN[COPY]

    def call(self, context: StepContext) -> StepHandlerResult:
        """Copy the file; a further attempt writes the same."""
        inputs = self.inputs(context)
        source = self.resource(context, inputs["resource"])
        target = self.resource(context, inputs.get("to_resource", inputs["resource"]))
        content = source.read(inputs["path"])
        target.write(inputs["to_path"], content, inputs.get("replace", True))
        return self.success(_about(content))


@hookimpl
def tasker_configured() -> None:
    """Raise `RuntimeError` without fsspec."""
    if find_spec("fsspec") is None:
        raise RuntimeError('it needs fsspec: pip install "tasker-engine[files]"')


@hookimpl
def tasker_handlers() -> list[type[BuiltinHandler]]:
    """Return the handlers."""
    return [ReadFile, WriteFile, ListFiles, CopyFile]

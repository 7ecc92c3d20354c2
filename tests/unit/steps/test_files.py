"""Files are read, written, listed and copied below the root of a resource, and nowhere else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from tasker.errors import ConfigurationError, TaskerError
from tasker.testing.contexts import step_context
from tasker_steps.files import CopyFile, FilesResource, ListFiles, ReadFile, WriteFile, make_files

HANDLERS = {"read": ReadFile, "write": WriteFile, "list": ListFiles, "copy": CopyFile}


@pytest.fixture(params=["file", "memory"])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def make(**settings: Any) -> FilesResource:
        (tmp_path / "root").mkdir(exist_ok=True)
        url = f"file://{tmp_path / 'root'}" if request.param == "file" else f"memory://{tmp_path.name}/root"
        return make_files({"url": url, "writable": True, **settings})

    return make


def ran(resource: FilesResource, action: str, other: FilesResource | None = None, **inputs: Any) -> dict[str, Any]:
    names = {"resource": "files", **({} if other is None else {"to_resource": "other"})}
    context = step_context({**names, **inputs}, resources={"files": resource, "other": other})
    return dict(HANDLERS[action]().call(context).result or {})


def failure(resource: FilesResource, action: str, **inputs: Any) -> TaskerError:
    with pytest.raises(TaskerError) as failed:
        ran(resource, action, **inputs)
    return failed.value


def test_file_is_written_read_listed_and_copied(bucket: Any) -> None:
    files = bucket()
    about = {"bytes": 6, "sha256": hashlib.sha256("größ".encode()).hexdigest()}
    assert ran(files, "write", path="a/b.txt", text="größ") == about
    assert ran(files, "read", path="a/b.txt") == {**about, "text": "größ"}
    ran(files, "write", path="c.json", json={"ü": [1]})
    assert ran(files, "read", path="c.json", content="json")["json"] == {"ü": [1]}
    ran(files, "write", path="d.bin", base64="AP8=")
    assert ran(files, "read", path="d.bin", content="base64")["base64"] == "AP8="
    assert ran(files, "copy", path="a/b.txt", to_path="e/f.txt")["bytes"] == 6
    assert [file["path"] for file in ran(files, "list")["files"]] == ["c.json", "d.bin"]
    everything = [{"path": "a/b.txt", "bytes": 6}, {"path": "c.json", "bytes": 11}]
    assert ran(files, "list", recursive=True)["files"][:2] == everything
    assert [file["path"] for file in ran(files, "list", path="e")["files"]] == ["e/f.txt"]
    assert ran(files, "list", path="nothing")["files"] == []


def test_file_is_copied_to_another_resource(bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files, other = bucket(), make_files({"url": f"file://{tmp_path / 'other'}", "writable": True})
    ran(files, "write", path="a.txt", text="a")
    ran(files, "copy", other, path="a.txt", to_path="b.txt")
    assert (tmp_path / "other" / "b.txt").read_text() == "a"


def test_existing_file_is_kept_unless_it_has_the_same_content(bucket: Any) -> None:
    files = bucket()
    for _ in range(2):  # a second attempt finds the file of the first one
        ran(files, "write", path="a.txt", text="a", replace=False)
    assert failure(files, "write", path="a.txt", text="b", replace=False).error_code == "file_exists"
    ran(files, "write", path="a.txt", text="b")
    assert ran(files, "read", path="a.txt")["text"] == "b"


ESCAPES = [
    "../secret", "a/../../secret", "/etc/passwd", "a//b", "./a", "a/.", "..", "a\\..\\b", "a\0b", "a\nb", "~/../x", "/",
]  # fmt: skip


@pytest.mark.parametrize("path", ESCAPES)
def test_path_cannot_leave_the_root(bucket: Any, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    files = bucket()
    for action, inputs in (("read", {}), ("list", {}), ("write", {"text": "x"}), ("copy", {"to_path": "x"})):
        assert failure(files, action, path=path, **inputs).error_code == "invalid_path"
    ran(files, "write", path="a.txt", text="a")
    assert failure(files, "copy", path="a.txt", to_path=path).error_code == "invalid_path"
    assert (tmp_path / "secret").read_text() == "secret"


def test_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (outside := tmp_path / "outside").mkdir()
    (outside / "secret").write_text("secret")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    files = make_files({"url": f"file://{root}", "writable": True})
    for path in ("folder/secret", "file"):
        assert failure(files, "read", path=path).error_code == "invalid_path"
        assert failure(files, "write", path=path, text="x").error_code == "invalid_path"
    assert failure(files, "list", path="folder").error_code == "invalid_path"
    assert ran(files, "list", recursive=True) == {"files": []}
    assert (outside / "secret").read_text() == "secret"


def test_root_may_be_a_link_and_special_files_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files = make_files({"url": f"file://{tmp_path / 'link'}"})
    os.mkfifo(tmp_path / "real" / "pipe")
    assert failure(files, "read", path="pipe").error_code == "not_a_file"
    (tmp_path / "real" / "a").write_text("a")
    assert ran(files, "read", path="a")["text"] == "a"


@pytest.mark.parametrize(
    ("settings", "action", "inputs", "code"),
    [
        ({}, "read", {"path": "missing"}, "not_found"),
        ({}, "read", {"path": "folder"}, "not_a_file"),
        ({}, "read", {"path": "folder/a", "content": "json"}, "invalid_content"),
        ({"max_bytes": 1}, "read", {"path": "folder/a"}, "file_too_large"),
        ({"max_bytes": 1}, "write", {"path": "b", "text": "bb"}, "file_too_large"),
        ({"writable": False}, "write", {"path": "b", "text": "b"}, "read_only"),
        ({}, "write", {"path": "b", "text": "b", "json": 1}, "invalid_inputs"),
        ({}, "write", {"path": "b"}, "invalid_inputs"),
        ({}, "write", {"path": "b", "base64": "?"}, "invalid_inputs"),
        ({"max_files": 1}, "list", {"recursive": True}, "too_many_files"),
    ],
)
def test_failures_are_permanent(bucket: Any, settings: Any, action: str, inputs: Any, code: str) -> None:
    files = bucket()
    for path in ("folder/a", "folder/b"):
        ran(files, "write", path=path, text="no json")
    error = failure(bucket(**settings), action, **inputs)
    assert (error.retryable, error.error_code) == (False, code)


class Unreachable:
    """A file system whose service is down, and reports it in its own way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def info(self, path: str) -> Any:
        raise self._error


@pytest.mark.parametrize(
    ("error", "retryable", "code"),
    [
        (type("EndpointConnectionError", (Exception,), {})("no route"), True, "files_unavailable"),
        (OSError(5, "Input/output error"), True, "files_unavailable"),
        (PermissionError("expired token"), False, "access_denied"),
    ],
)
def test_unreachable_service_is_retried_and_refused_access_is_not(error: Exception, retryable: bool, code: str) -> None:
    found = failure(FilesResource(Unreachable(error), "bucket", False), "read", path="a")
    assert (found.retryable, found.error_code) == (retryable, code)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "url"),
        ({"url": "/tmp"}, "url"),
        ({"url": "http://example.com/a"}, "url"),
        ({"url": "file:///"}, "url"),
        ({"url": "memory://a::http://b"}, "url"),
        ({"url": "file:///no/such/folder"}, "no folder"),
        ({"url": "memory://a", "writable": "yes"}, "true or false"),
    ],
)
def test_mistake_of_the_configuration_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make_files(settings)
    assert message in refused.value.message

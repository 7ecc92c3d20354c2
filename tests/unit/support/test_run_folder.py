"""The folder of a test run stays for as long as one of its processes uses it."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.servers import run_folder as module
from tests.support.servers.run_folder import USERS, run_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_parent", lambda: tmp_path)
    return tmp_path / f"{module.PREFIX}1"


def between_opening_and_locking(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    lock, left = fcntl.flock, [happens]

    def flock(file: int, how: int) -> None:
        if how == fcntl.LOCK_SH and left:
            left.pop()()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)


def another_run_begins() -> None:
    """It removes what it finds unused, and leaves."""
    with run_folder("2"):
        pass


def test_the_last_that_leaves_removes_it(folder: Path) -> None:
    with run_folder("1"):
        with run_folder("1") as same:
            assert same == folder
        another_run_begins()
        assert (folder / USERS).exists()
    assert list(folder.parent.iterdir()) == []


def test_one_that_comes_while_it_is_removed_uses_the_folder_that_the_others_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed_and_made_again() -> None:
        another_run_begins()
        folder.mkdir()
        (folder / USERS).touch()

    between_opening_and_locking(monkeypatch, removed_and_made_again)
    with run_folder("1"):
        another_run_begins()
        assert (folder / USERS).exists()


def test_one_whose_folder_is_removed_before_it_has_joined_makes_it_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_opening_and_locking(monkeypatch, another_run_begins)
    with run_folder("1"):
        assert (folder / USERS).exists()

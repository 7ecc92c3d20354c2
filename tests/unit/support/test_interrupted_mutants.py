"""The mutants' runner is interrupted: what it runs ends in good order, nothing is left, what was tried is told."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.waiting import until
from tools import mutants

CODE = "def double(number):\n    return number * 2\n"
PATCH = """# {title}
# tests: {tests}
--- a/code_.py
+++ b/code_.py
@@ -1,2 +1,2 @@
 def double(number):
-    return number * 2
+    return number * 3
"""
QUICK = "from code_ import double\n\ndef test_it(): assert double(2) == 4\n"
SLOW = """
import os, signal, subprocess, sys, time
from pathlib import Path
from code_ import double

HERE = Path({folder!r})
TOLD = []


def note(name, text=""):
    (HERE / "half").write_text(text)
    (HERE / "half").rename(HERE / name)


def told(*_):
    TOLD.append(1)
    note(f"told {{len(TOLD)}}")
    if {yields}:
        raise KeyboardInterrupt


def test_it():
    if double(2) == 4:
        return
    signal.signal(signal.SIGINT, told)
    beside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    note("begun", f"{{os.getpid()}} {{beside.pid}}")
    try:
        while True:
            time.sleep(600)
    finally:
        beside.kill()
        beside.wait()
        note("ended in good order")
"""


class Project:
    """A folder with two mutants: the tests notice the first one at once, and never end with the second."""

    def __init__(self, folder: Path, *, yields: bool) -> None:
        self.folder, self.notes, self.scratch = folder / "project", folder / "notes", folder / "scratch"
        for each in (self.folder / "tools", self.folder / "mutants", self.notes, self.scratch):
            each.mkdir(parents=True)
        shutil.copy2(mutants.__file__, self.folder / "tools" / "mutants.py")
        (self.folder / "code_.py").write_text(CODE)
        (self.folder / "test_quick.py").write_text(QUICK)
        (self.folder / "test_slow.py").write_text(SLOW.format(folder=str(self.notes), yields=yields))
        for name, tests in (("M1", "test_quick.py"), ("M2", "test_slow.py"), ("M3", "test_quick.py")):
            (self.folder / "mutants" / f"{name}.patch").write_text(PATCH.format(title=f"mutant {name}", tests=tests))
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)

    def run(self) -> subprocess.Popen[str]:
        """The runner, in a process group of its own as a shell starts it."""
        plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
        return subprocess.Popen(
            [sys.executable, "-m", "tools.mutants", "mutants"],
            cwd=self.folder,
            env={**os.environ, **plain, "TMPDIR": str(self.scratch)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def all_gone(self) -> bool:
        """The tests, and what they started."""
        return all(map(gone, map(int, (self.notes / "begun").read_text().split())))

    def noted(self, name: str) -> bool:
        return (self.notes / name).exists()


def gone(pid: int) -> bool:
    """No such process, or one that nobody has asked about yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@contextmanager
def at_the_second(tmp_path: Path, *, yields: bool) -> Iterator[tuple[Project, subprocess.Popen[str]]]:
    """A run in which the second mutant's tests are under way, which may yield to Ctrl-C or not."""
    made = Project(tmp_path, yields=yields)
    with made.run() as running:
        try:
            until(lambda: made.noted("begun"), "the second mutant's tests run")
            yield made, running
        finally:
            running.kill()
            for pid in map(int, (made.notes / "begun").read_text().split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("group", [True, False], ids=["ctrl_c", "sigterm"])
def test_its_tests_end_in_good_order_and_what_was_tried_is_told(tmp_path: Path, group: bool) -> None:
    with at_the_second(tmp_path, yields=True) as (made, running):
        os.killpg(running.pid, signal.SIGINT) if group else running.send_signal(signal.SIGTERM)
        said, complained = running.communicate(timeout=60)

        assert running.returncode == 130
        assert said.splitlines() == ["killed     M1: mutant M1", "interrupted: 1 of 1 mutants killed, 2 not tried"]
        assert complained == ""
        assert made.noted("ended in good order")
        assert not made.noted("told 2"), "once is enough: a second time would keep it from tidying up"
        assert not list(made.scratch.glob("tasker-mutants-*"))
        assert (made.folder / "code_.py").read_text() == CODE
        assert made.all_gone()


def test_tests_that_do_not_end_are_killed_with_all_they_started_when_it_is_asked_again(tmp_path: Path) -> None:
    with at_the_second(tmp_path, yields=False) as (made, running):
        running.send_signal(signal.SIGINT)
        until(lambda: made.noted("told 1"), "its tests are told")
        running.send_signal(signal.SIGINT)
        said, complained = running.communicate(timeout=60)

        assert (running.returncode, complained) == (130, "")
        assert said.splitlines()[-1] == "interrupted: 1 of 1 mutants killed, 2 not tried"
        assert not list(made.scratch.glob("tasker-mutants-*"))
        until(made.all_gone, "what they started is killed, too")

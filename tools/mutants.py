"""Break the code on purpose, one patch at a time, and see that the tests which the patch names go red.

    python -m tools.mutants [PATCH OR FOLDER ...]

A patch is a file below tests/mutants. Its first lines say what it breaks and, after `tests:`, which tests must notice,
as pytest's arguments; the rest is what `git apply` reads. Each is applied to a copy of the working tree, so nothing is
touched here. Ends with 1 when a mutant survives, when its patch does not apply any more, or when its tests are red
without it. Ctrl-C and SIGTERM end the tests that run, in good order; a second time kills them. What was tried is told
then, and it ends with 130.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "tests" / "mutants"
FAILED = 1
"""pytest's exit code for tests that failed; others mean that it did not run them."""
INTERRUPTED = 130
GRACE_SECONDS, LOOK_SECONDS = 60.0, 0.2
"""How long tests that were told to end may take to stop what they have started, and how soon they are told."""


@dataclass(frozen=True)
class Mutant:
    """One way to break the code, and the tests that must notice it."""

    path: Path
    title: str
    tests: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Mutant:
        """Raises `ValueError` when the head of the file names no tests."""
        head = [line[1:].strip() for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
        tests = [word for line in head if line.startswith("tests:") for word in line.split()[1:]]
        if not head or not tests:
            raise ValueError(f"{path}: expected '# what it breaks' and '# tests: PATH::NAME ...' in its first lines")
        return cls(path, head[0], tuple(tests))


def find(arguments: Sequence[str]) -> Iterator[Mutant]:
    """The mutants of these files and folders, of all without any."""
    for path in map(Path, arguments or [str(MUTANTS)]):
        if not path.exists():
            raise ValueError(f"{path}: there is no such file or folder")
        yield from map(Mutant.read, sorted(path.rglob("*.patch")) if path.is_dir() else [path.resolve()])


class Programs:
    """Runs programs, until it is asked to end: then it tells the one that runs, and begins no other.

    Each has a process group of its own. So Ctrl-C reaches it by way of here, once, and nothing that it started is left.
    """

    def __init__(self) -> None:
        self.asked = 0
        """How often somebody wanted an end."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Programs:
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1

    def run(self, command: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> int:
        """Its exit code, and `INTERRUPTED` where it was not begun. Nothing of what it says is shown."""
        if self.asked:
            return INTERRUPTED
        nothing = subprocess.DEVNULL
        program = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=nothing, stdout=nothing, stderr=nothing, process_group=0
        )
        while not (self.asked or _ended(program)):
            pass
        return self._end(program) if self.asked else program.returncode

    def _end(self, program: subprocess.Popen[bytes]) -> int:
        """Tell it to; kill it when that takes too long, or somebody asks again; and what it left in any case."""
        asked, limit = self.asked, time.monotonic() + GRACE_SECONDS
        _tell(program, signal.SIGINT)
        while not _ended(program) and self.asked == asked and time.monotonic() < limit:
            pass
        _tell(program, signal.SIGKILL)
        return program.wait()


def _ended(program: subprocess.Popen[bytes]) -> bool:
    try:
        program.wait(LOOK_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _tell(program: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(program.pid, number)


def verdict(mutant: Mutant, copy: Path, programs: Programs) -> str:
    """`killed`, or what is wrong with it."""
    if not _apply(mutant, copy, programs, "--check"):
        return "does not apply: the code has changed, renew the patch"
    if _run(mutant, copy, programs) != 0:
        return "its tests are red without it"
    _apply(mutant, copy, programs)
    code = _run(mutant, copy, programs)
    _apply(mutant, copy, programs, "--reverse")
    return {0: "SURVIVED", FAILED: "killed"}.get(code, f"its tests did not run (pytest ended with {code})")


def _apply(mutant: Mutant, copy: Path, programs: Programs, *options: str) -> bool:
    applied = programs.run(["git", "apply", "--recount", *options, str(mutant.path.resolve())], copy) == 0
    _forget_compiled(mutant, copy)
    return applied


def _forget_compiled(mutant: Mutant, copy: Path) -> None:
    """What was compiled before would be used again for a file that kept its size within a second."""
    for name in re.findall(r"^\+\+\+ b/(\S+\.py)$", mutant.path.read_text(), re.MULTILINE):
        Path(cache_from_source(str(copy / name))).unlink(missing_ok=True)


def _run(mutant: Mutant, copy: Path, programs: Programs) -> int:
    paths = [copy, *(copy / folder for folder in ("backends", "plugins"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    # also on the second server: what grows is counted there, where rows and pages are told
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not long"]
    command += mutant.tests
    return programs.run(command, copy, environment)


def _copy(folder: Path) -> Path:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    # in a group of its own, or Ctrl-C would reach it
    listing = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True, process_group=0)
    names = listing.stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def main(arguments: Sequence[str]) -> int:
    """Print a line for each mutant and how many were killed; the exit code."""
    try:
        mutants = list(find(arguments))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    with Programs() as programs, tempfile.TemporaryDirectory(prefix="tasker-mutants-") as folder:
        found = list(_verdicts(mutants, _copy(Path(folder)), programs))
    killed = found.count("killed")
    if programs.asked:
        print(f"interrupted: {killed} of {len(found)} mutants killed, {len(mutants) - len(found)} not tried")
        return INTERRUPTED
    print(f"{killed} of {len(mutants)} mutants killed")
    return 0 if killed == len(mutants) else 1


def _verdicts(mutants: Sequence[Mutant], copy: Path, programs: Programs) -> Iterator[str]:
    """Of each, as far as it goes, with a line for it."""
    for mutant in mutants:
        found = verdict(mutant, copy, programs)
        if programs.asked:
            return
        print(f"{found:<10} {mutant.path.stem}: {mutant.title}", flush=True)
        yield found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

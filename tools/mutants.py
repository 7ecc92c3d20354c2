"""Break the code on purpose, one patch at a time, and see that the tests which the patch names go red.

    python -m tools.mutants [PATCH OR FOLDER ...]

A patch is a file below tests/mutants. Its first lines say what it breaks and, after `tests:`, which tests must notice,
as pytest's arguments; the rest is what `git apply` reads. Each is applied to a copy of the working tree, so nothing is
touched here. Ends with 1 when a mutant survives, when its patch does not apply any more, or when its tests are red
without it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "tests" / "mutants"
FAILED = 1
"""pytest's exit code for tests that failed; others mean that it did not run them."""


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


def verdict(mutant: Mutant, copy: Path) -> str:
    """`killed`, or what is wrong with it."""
    if not _apply(mutant, copy, "--check"):
        return "does not apply: the code has changed, renew the patch"
    if _run(mutant, copy) != 0:
        return "its tests are red without it"
    _apply(mutant, copy)
    try:
        code = _run(mutant, copy)
    finally:
        _apply(mutant, copy, "--reverse")
    return {0: "SURVIVED", FAILED: "killed"}.get(code, f"its tests did not run (pytest ended with {code})")


def _apply(mutant: Mutant, copy: Path, *options: str) -> bool:
    command = ["git", "apply", "--recount", *options, str(mutant.path.resolve())]
    applied = subprocess.run(command, cwd=copy, capture_output=True, check=False).returncode == 0
    _forget_compiled(mutant, copy)
    return applied


def _forget_compiled(mutant: Mutant, copy: Path) -> None:
    """What was compiled before would be used again for a file that kept its size within a second."""
    for name in re.findall(r"^\+\+\+ b/(\S+\.py)$", mutant.path.read_text(), re.MULTILINE):
        Path(cache_from_source(str(copy / name))).unlink(missing_ok=True)


def _run(mutant: Mutant, copy: Path) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), str(copy / "backends")])}
    # also on the second server: what grows is counted there, where rows and pages are told
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not long"]
    command += mutant.tests
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode


def _copy(folder: Path) -> Path:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
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
    killed = 0
    with tempfile.TemporaryDirectory(prefix="tasker-mutants-") as folder:
        copy = _copy(Path(folder))
        for mutant in mutants:
            found = verdict(mutant, copy)
            killed += found == "killed"
            print(f"{found:<10} {mutant.path.stem}: {mutant.title}", flush=True)
    print(f"{killed} of {len(mutants)} mutants killed")
    return 0 if killed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

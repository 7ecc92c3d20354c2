"""The mutants of tests/mutants are patches of today's code."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools import mutants


def applies(patch: Path) -> bool:
    command = ["git", "apply", "--recount", "--check", str(patch)]
    return subprocess.run(command, cwd=mutants.ROOT, capture_output=True, check=False).returncode == 0


def test_every_mutant_can_be_applied() -> None:
    """One that can't proves nothing any more: `make mutants` would say so, which is run less often than the tests."""
    patches = sorted(mutants.MUTANTS.rglob("*.patch"))
    with ThreadPoolExecutor() as threads:
        stale = [patch.stem for patch, good in zip(patches, threads.map(applies, patches), strict=True) if not good]
    assert patches
    assert stale == []


def test_every_mutant_names_tests_that_exist() -> None:
    missing = [
        f"{mutant.path.stem}: {named}"
        for mutant in mutants.find([])
        for named in mutant.tests
        if not (mutants.ROOT / named.partition("::")[0]).exists()
    ]
    assert missing == []

"""A child does not outlive its parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.unit.execution.bench import PATIENCE

PARENT = """
import asyncio
from tests.unit.execution import child_handlers
from tests.unit.execution.bench import make_bench

async def main():
    bench = make_bench()
    await bench.end(bench.attempt(child_handlers.Announces, execution="process"))

asyncio.run(main())
"""


def test_a_child_ends_with_its_parent_even_in_the_middle_of_a_handler() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "running\n"

    parent.kill()

    said, _ = parent.communicate(timeout=PATIENCE)  # the child holds the pipe open for as long as it lives
    assert said == ""

"""What running an attempt imports: a worker's hot process stays small (design rule 25)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, json, sys
from tasker.step_handler import step_handler
from tests.unit.execution.bench import make_bench

@step_handler("on_loop")
async def on_loop(): return {}

@step_handler("in_thread")
def in_thread(): return {}

async def main():
    bench = make_bench()
    ends = [await bench.run(handler, callable=handler.__name__) for handler in (on_loop, in_thread)]
    assert all(end.success for end in ends), ends
    await bench.runner.close(0)

asyncio.run(main())
print(json.dumps(sorted(sys.modules)))
"""
HEAVY = {
    "alembic",
    "httpx",
    "jsonschema",
    "multiprocessing",
    "psycopg",
    "rich",
    "sqlalchemy",
    "structlog",
    "yaml",
}


def test_running_handlers_imports_no_heavy_library_and_no_process_mode() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )

    loaded = set(json.loads(done.stdout))
    assert not HEAVY & loaded
    assert "tasker.execution.modes.subprocess_pool" not in loaded
    assert "tasker.execution.attempt.runner" in loaded

"""A program that submits a mixture: `python -m tests.support.submitting URL BACKEND COUNT SECONDS SEED [--slow]`.

With `--slow` it has only slow tasks. It may be killed at any moment and started again: what it had created is not
created again.
"""

from __future__ import annotations

import asyncio
import sys

import tasker
from tests.support.mixture import mixture, slow_tasks, submit


async def main(url: str, backend: str, count: str, seconds: str, seed: str, only: str = "") -> None:
    """Submit everything."""
    async with tasker.App(url, backend=backend, work=False) as app:
        make = slow_tasks if only == "--slow" else mixture
        await submit(app, make(int(count), seconds=float(seconds), seed=int(seed)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

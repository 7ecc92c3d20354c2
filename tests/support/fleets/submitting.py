"""Submits a mixture: `python -m tests.support.fleets.submitting URL BACKEND COUNT SECONDS SEED [--slow]`.

With `--slow` it has only slow tasks, all at once; others come a moment apart, as they do in life. It may be killed at
any moment and started again: what it had created is not created again.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import tasker
from tasker.services.submission.submit import Submission
from tasker.services.workflows.files import load_plans
from tests.support.fleets.mixture import mixture, register_children, slow_tasks, submit
from tests.support.registered import submit_registered

PAUSE_SECONDS = 0.03


def submit_folder(url: str, folder: Path) -> str:
    """A task of the folder's workflow, from a program that does not serve it; its identifier."""

    async def create() -> str:
        async with tasker.App(url, work=False) as app:
            (plan,) = load_plans(str(folder), None)
            return (await submit_registered(app, plan, Submission())).task_uuid

    return asyncio.run(create())


async def main(url: str, backend: str, count: str, seconds: str, seed: str, only: str = "") -> None:
    """Submit everything."""
    async with tasker.App(url, backend=backend, work=False) as app:
        if only == "--slow":
            await submit(app, slow_tasks(int(count), seconds=float(seconds), seed=int(seed)))
        else:
            await register_children(app)
            await submit(app, mixture(int(count), seconds=float(seconds), seed=int(seed)), pause=PAUSE_SECONDS)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(*sys.argv[1:]))

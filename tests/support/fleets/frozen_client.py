"""A client that freezes: `python -m tests.support.fleets.frozen_client URL claim ARGS` or `... URL submit`.

`claim` sends the call and stops itself before it reads the answer, in `submit` while its transaction is open; told to
go on, that one commits.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psycopg

import tasker
from tasker.db.database import conninfo

WORKFLOW = Path(__file__).parents[2] / "chaos" / "workflow"


def claim(url: str, args: str) -> None:
    """Hold what a claim locks, for as long as the server bears with it."""
    connection = psycopg.connect(conninfo(url, application_name="tasker claim"), autocommit=True)
    connection.pgconn.send_query_params(b"select tasker_pgmq.claim_v1($1::jsonb)", [args.encode()])
    while connection.pgconn.flush():
        pass
    os.kill(os.getpid(), signal.SIGSTOP)


async def submit(url: str) -> None:
    """Create a task in an open transaction, freeze, and commit when thawed."""
    async with tasker.App(url, work=False) as app:
        with psycopg.connect(url) as mine:
            submitted = await app.submit_in(mine, WORKFLOW, {"seconds": 0.0, "n": -1})
            print(submitted.task_uuid, flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    if sys.argv[2] == "claim":
        claim(sys.argv[1], sys.argv[3])
    else:
        asyncio.run(submit(sys.argv[1]))

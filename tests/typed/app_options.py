"""What type checkers find in a program, and what they let pass.

Never run: `make check` looks at it, and complains of each mistake that it does not find (`warn_unused_ignores`).
"""

from __future__ import annotations

from pathlib import Path

import tasker

app, sync = tasker.App(), tasker.SyncApp()
tasker.App(bakend="memory")  # type: ignore[call-arg]
tasker.SyncApp(bakend="memory")  # type: ignore[call-arg]
tasker.SyncApp(work="no")  # type: ignore[arg-type]
sync.submit("a/b", prio=1)  # type: ignore[call-arg]
sync.run("a/b", priority="urgent")  # type: ignore[arg-type]
tasker.submit_in(None, "a/b", prio=1)  # type: ignore[call-arg]
sync.pause(step="a/b/c", stepp="x")  # type: ignore[call-arg]


async def mistakes() -> None:
    """Options that do not exist, and values that none takes."""
    await app.submit("a/b", prio=1)  # type: ignore[call-arg]
    await app.submit("a/b", on_duplicate="retrun")  # type: ignore[arg-type]
    await app.run("a/b", prio=1)  # type: ignore[call-arg]
    await app.submit_in(None, "a/b", on_duplicate="return")  # type: ignore[call-arg]
    await app.submit_many("a/b", [], enviroment="test")  # type: ignore[call-arg]
    await tasker.TaskRequester("rabbitmq").request("a/b", prio=1)  # type: ignore[call-arg]


async def none() -> None:
    """Options that there are."""
    await app.submit("a/b", {}, template="b", environment="test", priority=1, tags=["x"], on_duplicate="return")
    await app.run("a/b", timeout=1, priority=1, initiator="me")
    sync.submit("a/b", template="b", priority=1)
    tasker.SyncApp("postgresql://", work=False, data_dir=Path("x"))

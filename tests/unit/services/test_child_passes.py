"""Passes over what is to be done about child tasks: what cannot be done now keeps nobody from the rest."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tasker.errors import PlanUnreadable
from tasker.services.child_tasks import FAN_OUTS, ChildTasks

Rows = list[dict[str, Any]]


class Database:
    """Rows of `child_work_v1` whose template nobody can read; `deferred` and `opened` note what was tried."""

    def __init__(self, unplanned: int = 0, ended: int = 0) -> None:
        self.unplanned: Rows = [{"step": f"w{n}", "token": 1, "task": f"t{n}", "template": n} for n in range(unplanned)]
        self.ended: Rows = [{"step": f"f{n}", "token": 1} for n in range(ended)]
        self.tried: list[str] = []

    async def read(self, function: str, args: dict[str, Any]) -> Any:
        if function == "child_work":
            most = args["limit"]
            found = {"unplanned": self.unplanned[:most], "fan_outs": self.ended[:most], "stray": []}
            return {**found, "more": most in (len(found["unplanned"]), len(found["fan_outs"]))}
        if function == "fan_out":
            self.tried.append(args["step"])
            raise PlanUnreadable("written by a newer version")
        assert function == "defer_fan_out", function
        return {}

    async def get(self, template: int) -> Any:
        self.tried.append(f"w{template}")
        raise PlanUnreadable("written by a newer version")


@pytest.mark.parametrize("kind", ["unplanned", "ended"])
def test_steps_that_cannot_be_read_do_not_keep_a_process_from_others(kind: str) -> None:
    database = Database(**{kind: FAN_OUTS + 5})
    children = ChildTasks(cast(Any, database), cast(Any, database), cast(Any, None), lambda _: None)

    async def look() -> None:
        assert not (await children.look(cast(Any, None))).more, "the same would be read again at once"

    for _ in range(3):
        asyncio.run(look())

    every = {row["step"] for row in database.unplanned + database.ended}
    assert set(database.tried) == every
    assert len(database.tried) == len(every), "some were read twice within a moment"

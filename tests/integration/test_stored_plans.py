"""A template that a newer version has stored is refused by name, and does not stop the process that meets it."""

from __future__ import annotations

import pytest

from tasker.db.connection import Connection
from tasker.errors import PlanUnreadable
from tasker.services.plans import PlanStore
from tasker.template import compile_text

TEMPLATE = """
name: later
namespace_name: stored
version: "2.0.0"
steps:
  - {name: only, handler: stored.only}
"""


async def test_a_plan_with_what_this_version_does_not_know_is_named_with_what_to_do(database_url: str) -> None:
    connection = Connection(database_url)
    (plan,) = compile_text(TEMPLATE).plans
    stored = await PlanStore(connection).register(plan)
    await connection.execute("update tasker.templates set plan = jsonb_set(plan, '{steps,0,moon_phase}', '1')")
    plans = PlanStore(connection)
    for read in (plans.get(stored.template_id), plans.find("stored", "later")):
        with pytest.raises(PlanUnreadable, match=r"stored/later/2\.0\.0 .*moon_phase") as refused:
            await read
        assert "bring this process up to that version" in str(refused.value.hint)
    await connection.close()

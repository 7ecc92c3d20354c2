"""A day of an operator with a profile alone: a server and a worker as processes, and no database in reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tasker.cli.main import cli
from tests.acceptance.fleet.test_server import server
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.waiting import until

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"
TEMPLATE = """
    name: order
    namespace_name: shop
    version: "1.0.0"
    steps:
      - {name: check, handler: shop.check}
      - {name: charge, handler: shop.charge, dependencies: [check]}
"""
HANDLERS = """
    from tasker.errors import PermanentError
    from tasker.handlers.decorators import step_handler


    @step_handler("shop.check")
    async def check(context):
        print("looks at", context.get_input("amount"))
        if context.get_input("amount") < 0:
            raise PermanentError("less than nothing", error_code="NEGATIVE")
        return {"checked": True}


    @step_handler("shop.charge")
    async def charge(context):
        return {"charged": context.get_input("amount")}
"""


@pytest.mark.slow
def test_a_day_of_an_operator_needs_nothing_but_a_profile(
    database_url: str, fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", NOWHERE)
    workflow = write_workflow(tmp_path / "order", TEMPLATE, HANDLERS)

    def tasker(command: str, *facts: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, command.split())
        assert result.exit_code == code, (command, result.output)
        assert [fact for fact in facts if fact not in result.output] == [], (command, result.output)
        return result.stdout

    with server(tmp_path, database_url) as (_, address, _numbers):
        tasker(f"profile add here --url {address} --use", "here")
        tasker("profile check", address)
        tasker(f"template register {workflow}", "shop/order")
        waiting = tasker("task submit shop/order --set amount=1").split()[0]
        tasker(f"task explain {waiting}", "no live worker serves shop.check", code=1)
        tasker("pause shop --reason stocktaking", "shop")
        fleet.worker("one", str(workflow))
        until(lambda: "live" in tasker("worker list"), "the worker is at work")
        tasker(f"task explain {waiting}", "stocktaking", code=1)
        tasker("resume shop", "shop")
        tasker(f"task watch {waiting}", "complete")
        failed = tasker("task submit shop/order --set amount=-1").split()[0]
        tasker(f"task watch {failed}", "less than nothing", code=1)

        tasker("task list --status error", failed)
        tasker(f"task show {failed}", "less than nothing")
        tasker(f"task history {failed}", "in_progress")
        until(lambda: "looks at -1" in tasker(f"task logs {failed}"), "what it printed is kept")
        tasker("dlq list", failed, "shop/order")
        tasker("dlq groups", "less than nothing")
        tasker("dlq replay --all --dry-run", "1 task")
        again = tasker(f"task rerun {failed} --from check --set amount=2").split()[0]
        tasker(f"task watch {again}", "complete")
        tasker("analytics performance --format json", '"failed": 1')
        tasker("actions", "/rerun")
        tasker("top --once", "shop")
        tasker("doctor", "messages and workers match the rows")

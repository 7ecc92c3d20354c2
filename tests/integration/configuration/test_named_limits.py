"""`[limits.NAME]`: checked, shown and documented as other settings, and in force for every template that names one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import tasker
from tasker.app.configured import Configured, configured, from_environment
from tasker.engine.named_limits import NamedLimitNumbers
from tasker.errors import TemplateError, UnknownLimit
from tasker.services.configuration.loading import ConfigurationInvalid, assemble, differences
from tasker.services.configuration.sources import read_layer
from tasker.settings.catalogue import is_live
from tasker.settings.check import check
from tasker.settings.reference import reference
from tests.support.command_line import invoke

Write = Callable[[str, str], Path]
Run = Callable[..., Result]
LIMITS: dict[str, Any] = {"payment_api": {"concurrency": 2, "rate": "100/s"}, "mail": {"rate": "30/m", "burst": 3}}
HANDLERS = """\
from tasker.step_handler import step_handler

@step_handler("shop.pay")
def pay(context):
    return {}
"""
TEMPLATE = """\
name: order
namespace: shop
version: 1.0.0
steps:
  - name: pay
    handler: shop.pay
    limits: [{LIMIT}]
"""


def problems(write: Write, text: str) -> list[tuple[str, str, str, str | None]]:
    try:
        assemble("worker", "test", [read_layer(write("merged.toml", text))], {})
    except ConfigurationInvalid as error:
        return [(each.path, each.issue, each.fix, each.place) for each in error.problems]
    return []


def program(url: str, limits: dict[str, Any] = LIMITS, changed_at: datetime | None = None) -> Configured:
    settings = check({"limits": limits, "common": {"database": {"url": url}}}).settings
    assert settings is not None
    made = configured(settings)
    named = replace(made.worker.named_limits, changed_at=changed_at)
    return replace(made, worker=replace(made.worker, named_limits=named))


async def command(*words: str, database: str) -> Result:
    return await asyncio.to_thread(invoke, *words, database=database)


@pytest.mark.parametrize(
    ("text", "path", "issue", "fix"),
    [
        ("[limits.mail]\n", "limits.mail", "Neither concurrency nor rate is set", "Set concurrency, rate or both"),
        ("[limits.mail]\nconcurrency = 3\nburst = 2\n", "limits.mail.burst", "A burst without a rate", "Set rate, or"),
        ('[limits.mail]\nrate = "fast"\n', "limits.mail.rate", "Not a rate", "Expected a rate such as 100/s"),
        ("[limits.mail]\nconcurency = 3\n", "limits.mail.concurency", "does not exist", "limits.mail.concurrency?"),
        ('[limits.mail]\nconcurrency = "3"\n', "limits.mail.concurrency", "Not a whole number", "0 to 1000000"),
        ('[limits."my mail"]\nconcurrency = 3\n', "limits.my mail", "Not a valid name", "Use A-Z a-z 0-9 _ -"),
        ("[limits]\nmail = 3\n", "limits.mail", "Expected a table", "Write [limits.mail]"),
    ],
)
def test_what_is_wrong_with_a_limit_is_said_with_its_line(
    write: Write, text: str, path: str, issue: str, fix: str
) -> None:
    found = [each for each in problems(write, text) if each[0] == path]

    assert len(found) == 1, problems(write, text)
    assert issue in found[0][1]
    assert fix in found[0][2]
    assert found[0][3] is not None
    assert "merged.toml:" in found[0][3]


def test_limits_are_shown_explained_compared_and_documented(write: Write, run: Run) -> None:
    one = write("one.toml", '[limits.mail]\nrate = "30/m"\n')
    other = write("other.toml", '[limits.mail]\nrate = "60/m"\n[limits.sms]\nconcurrency = 1\n')

    assert 'rate = "30/m"' in run("show", "limits.mail", "--file", str(one)).stdout
    explained = run("explain", "limits.mail.rate", "--file", str(one)).stdout
    assert "one.toml:2" in explained
    assert "SIGHUP" in explained
    assert "no configuration file contains the table" in run("show", "limits.sms.rate", "--file", str(one)).stderr
    assert "limits.sms.concurrency" in run("diff", str(one), str(other)).stdout
    assert "## limits.NAME" in reference()


def test_a_changed_limit_is_a_difference_and_live() -> None:
    before, after = (check({"limits": limits}).settings for limits in (LIMITS, {"mail": {"rate": "60/m"}}))
    assert before is not None
    assert after is not None

    changed = {path for path, _, _ in differences(before, after)}
    assert changed == {
        "limits.payment_api.concurrency",
        "limits.payment_api.rate",
        "limits.payment_api.burst",
        "limits.mail.rate",
        "limits.mail.burst",
    }
    assert all(map(is_live, changed))


def test_the_age_of_the_limits_is_that_of_their_file(write: Write) -> None:
    file = write("merged.toml", '[limits.mail]\nconcurrency = 4\nrate = "8/s"\n')
    os.utime(file, (1_700_000_000, 1_700_000_000))

    found = from_environment("worker", {"TASKER_CONFIG_PATH": str(file)}).worker.named_limits

    assert list(found.limits) == [NamedLimitNumbers("mail", 4, 8.0, 3.0)]
    assert found.changed_at == datetime.fromtimestamp(1_700_000_000, UTC)


async def test_steps_run_under_a_limit_of_the_configuration(database_url: str, write: Write) -> None:
    folder = write("order/workflow.yaml", TEMPLATE.replace("{LIMIT}", "payment_api")).parent
    write("order/handlers.py", HANDLERS)
    async with tasker.App(configuration=program(database_url)) as app:
        report = await app.run(folder, {})
        (used,) = await app.limits.list("payment_api")

    assert report.status == "complete"
    assert (used.most, used.rate, used.burst, used.templates) == (2, 100.0, 26.0, ["shop/order"])
    shown = (await command("limit", "show", "payment_api", database=database_url)).stdout
    assert "2, 100/s, burst 26" in shown
    assert "shop/order" in shown
    assert "mail" in (await command("limit", "list", database=database_url)).stdout
    missing = await command("limit", "show", "nothing", database=database_url)
    assert missing.exit_code == 2
    assert "tasker limit list" in missing.stderr


async def test_an_unknown_limit_is_an_error_with_its_line_and_a_suggestion(database_url: str, write: Write) -> None:
    text = TEMPLATE.replace("{LIMIT}", "paymentapi")
    file = write("order/workflow.yaml", text)
    write("order/handlers.py", HANDLERS)
    async with tasker.App(configuration=program(database_url)) as app:
        with pytest.raises(TemplateError) as raised:
            await app.template_texts.register(text)
        with pytest.raises(UnknownLimit, match="step 'pay': no limit 'paymentapi'"):
            await app.submit(file, {})

    (problem,) = raised.value.diagnostics
    assert (problem.code, problem.line, problem.hint) == ("T126", 7, "did you mean `payment_api`?")
    assert "    limits: [paymentapi]" in str(raised.value)
    registered = await command("template", "register", str(file), database=database_url)
    assert registered.exit_code == 2
    assert "workflow.yaml:7:14: error[T126]" in registered.stderr


async def test_doctor_names_a_process_whose_file_has_other_numbers(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    older, newer = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    first = program(database_url, {"mail": {"concurrency": 5}}, newer)
    second = program(database_url, {"mail": {"concurrency": 7}}, older)
    async with tasker.App(configuration=first) as one, tasker.App(configuration=second):
        found = [finding for finding in await one.doctor.findings() if "limit mail" in finding.what]

    assert [finding.what for finding in found] == [
        "the limit mail is 5, but the configuration of 1 processes has other numbers"
    ]
    assert "limit_differs name=mail" in caplog.text

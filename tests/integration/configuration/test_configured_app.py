"""What the settings say is what happens."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg

import tasker
from tasker.app.configured import Configured, configured
from tasker.services.workflows.files import load_plans
from tasker.settings.catalogue import single_process
from tasker.settings.check import check
from tasker.settings.nested import nested
from tasker.template.content_hash import with_defaults
from tasker.template.plan import Plan, RetryPolicy

ROOT = Path(__file__).parents[3]

Write = Callable[[str, str], Path]


async def test_an_app_obeys_its_configuration(database_url: str, tmp_path: Path) -> None:
    settings = check(
        nested(
            {
                **single_process(),
                "common.database.url": database_url,
                "common.execution.on_blocked": "wait",
                "common.execution.result_limit_bytes": 1024,
                "orchestration.decision_points.max_decision_depth": 2,
                "orchestration.decision_points.warn_threshold_depth": 2,
            }
        )
    ).settings
    assert settings is not None
    (tmp_path / "workflow.yaml").write_text(
        "name: big\nnamespace: sizes\nversion: 1.0.0\nsteps:\n  - name: make\n    handler: sizes.make\n"
    )
    (tmp_path / "handlers.py").write_text(
        "from tasker.handlers.decorators import step_handler\n\n\n@step_handler('sizes.make')\ndef make(context):\n"
        "    return {'text': 'x' * 2000}\n"
    )
    async with tasker.App(configuration=configured(settings)) as app:
        submitted = await app.submit(tmp_path, {})
        async with asyncio.timeout(30):
            while (await app.tasks.state(submitted.task_uuid))[0] not in ("blocked_by_failures", "error"):
                pass
        report = await app.tasks.report(submitted.task_uuid)
        assert app.database_url == database_url
    assert report.status == "blocked_by_failures"
    assert "1,024 allowed" in str(report)


async def test_an_app_obeys_the_limits_of_decisions(database_url: str) -> None:
    table = "orchestration.decision_points"
    limits = {f"{table}.max_decision_depth": 1, f"{table}.warn_threshold_depth": 1}
    settings = check(nested({**single_process(), "common.database.url": database_url, **limits})).settings
    assert settings is not None
    folder = ROOT / "workflows" / "nested_approval"
    async with tasker.App(configuration=configured(settings)) as app:
        report = await app.run(folder, json.loads((folder / "input.json").read_text()), timeout=60)
    assert report.status == "error"
    assert "the limit is 1" in str(report)


def policy_of(configuration: Configured) -> RetryPolicy:
    assert configuration.retry is not None
    return configuration.retry


def test_steps_that_say_nothing_about_retries_take_the_configured_policy(write: Write) -> None:
    file = write(
        "workflow.yaml",
        "name: n\nnamespace: n\nversion: 1.0.0\nsteps:\n"
        "  - {name: silent, handler: h}\n"
        "  - {name: spoken, handler: h, retry: {max_attempts: 5}}\n"
        "  - {name: decide, type: decision, handler: h}\n",
    )
    settings = check(
        nested({"common.backoff.max_backoff_seconds": 60, "common.backoff.backoff_multiplier": 3.0})
    ).settings
    assert settings is not None
    plan = with_defaults(*load_plans(file), policy_of(configured(settings)))
    policies = [step.retry for name in ("silent", "spoken", "decide") for step in [plan.by_name[name]]]
    assert [(each.max_backoff_ms, each.multiplier, each.jitter) for each in policies] == [
        (60_000, 3.0, 0.15),
        (30_000, 3.0, 0.0),
        (60_000, 3.0, 0.15),
    ]
    assert [each.max_attempts for each in policies] == [3, 5, 1]
    listed = (1000, 5000, 15_000, 30_000, 60_000)
    assert [each.delays_ms for each in policies] == [listed, (), listed]


def test_a_plan_keeps_the_configured_delays_when_it_is_stored(write: Write) -> None:
    file = write("workflow.yaml", "name: n\nnamespace: n\nversion: 1.0.0\nsteps: [{name: silent, handler: h}]\n")
    settings = check(nested({"common.backoff.default_backoff_seconds": [2, 3]})).settings
    assert settings is not None
    plan = with_defaults(*load_plans(file), policy_of(configured(settings)))
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.by_name["silent"].retry.delays_ms == (2000, 3000)


def tasker_run(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TASKER_", "DATABASE_URL"))}
    return subprocess.run(
        [sys.executable, "-m", "tasker", "run", str(ROOT / "workflows" / "linear_math"), *arguments],
        env={**environ, "TASKER_CONFIG_PATH": str(config)},
        cwd=config.parent,
        capture_output=True,
        text=True,
    )


def test_run_takes_its_database_from_the_file_and_a_command_line_option_wins(database_url: str, write: Write) -> None:
    file = write("merged.toml", f'[common.database]\nurl = "{database_url}"\n[common.queues]\nbackend = "memory"\n')
    done = tasker_run(file)
    assert done.returncode == 0, done.stderr
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*) from tasker.tasks").fetchone() == (1,)
    refused = tasker_run(file, "--backend", "nonsense")
    assert refused.returncode == 1
    assert "no messaging backend 'nonsense'" in refused.stderr


def test_run_does_not_start_with_a_configuration_that_is_not_valid(write: Write) -> None:
    file = write("merged.toml", "[worker.lease]\nlease_ms = 1\n")
    done = tasker_run(file)
    assert done.returncode == 1
    assert f"Validation Error: worker.lease.lease_ms\nValue: 1  ({file}:2)\n" in done.stderr
    assert "Traceback" not in done.stderr

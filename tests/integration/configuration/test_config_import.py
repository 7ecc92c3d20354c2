"""A file of tasker-core becomes one of ours: what has a meaning stays, the rest is told with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Write = Callable[[str, str], Path]
OLD = """
[common.system]
default_dependent_system = "default"
[common.database]
url = "${DATABASE_URL}"
adapter = "postgresql"
[common.database.pool]
max_connections = 9999999
min_connections = 7
[common.queues]
backend = "pgmq"
naming_pattern = "{namespace}_{name}_queue"
[orchestration]
mode = "standalone"
max_concurrent_tasks = 100
[worker.web.database_pools]
web_api_pool_size = 5
[worker.mpsc_channels.handler_dispatch]
max_concurrent_handlers = 12
"""
LEFT_OUT = {
    "common.system",
    "common.database.adapter",
    "common.database.pool.max_connections",
    "common.queues.naming_pattern",
    "orchestration.max_concurrent_tasks",
    "orchestration.mode",
    "worker.web.database_pools",
}


def test_what_counts_is_written_and_the_rest_is_a_warning_with_its_place_and_reason(
    run: Callable[..., Result], write: Write, tmp_path: Path
) -> None:
    output = tmp_path / "ours.toml"
    done = run("import", write("old.toml", OLD), "--output", output)

    assert done.exit_code == 0, done.output
    warnings = [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]
    assert {line.split(" is ignored")[0].split(": ")[-1] for line in warnings} == LEFT_OUT
    assert "old.toml:6: common.database.adapter is ignored. The database is always PostgreSQL." in done.stderr
    text = output.read_text()
    assert 'url = "${DATABASE_URL}"' in text
    assert "max_concurrent_handlers = 12" in text
    assert run("validate", "--file", output, DATABASE_URL="postgresql://db/x").exit_code == 0


def test_programs_get_the_text_and_the_reasons(run: Callable[..., Result], write: Write) -> None:
    done = run("import", write("old.toml", OLD), "--format", "json")
    told = json.loads(done.stdout)

    assert {each["path"] for each in told["left_out"]} == LEFT_OUT
    assert "min_connections = 7" in told["toml"]


def test_nothing_is_overwritten_and_what_is_no_toml_is_an_error(run: Callable[..., Result], write: Write) -> None:
    file = write("old.toml", OLD)

    over, broken = run("import", file, "--output", file), run("import", write("new.toml", "a = "))

    assert (over.exit_code, "existing files are not overwritten" in over.stderr) == (2, True)
    assert (broken.exit_code, "is not TOML" in broken.stderr) == (1, True)
    assert file.read_text() == OLD

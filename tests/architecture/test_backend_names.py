"""The core names no messaging backend: what is said about one is said by its package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasker.installed import installed_backends

ROOT = Path(__file__).parents[2]
ORDINARY = {"memory"}
"""Words of the language, too: they name a backend in quotes, beside that word, and in the name of its package."""
NAMES = "|".join(name for name in installed_backends() if name not in ORDINARY)
QUOTED = "|".join(ORDINARY)
WORDS = re.compile(
    rf"(?<![a-z])({NAMES})(?![a-z])|[\"'`]({QUOTED})[\"'`]|({QUOTED}) backend|backend ({QUOTED})|tasker_({QUOTED})",
    re.IGNORECASE,
)
CACHE = "the cache's server, whose address is no backend's"
OLD_KEY = "a key of files that are older or of similar systems, read or refused by its name"
PUBLISHED = "a field of the published interface"
EXAMPLE = "an example of a command's help"
METRIC = "a published metric, told with whichever backend"
ALLOWED: dict[tuple[str, str], str] = {
    ("settings/addresses.py", 'DEFAULT_BACKEND = "pgmq"'): "the default, in its one place",
    ("messaging/queues.py", 'CHANNEL_PREFIX = "pgmq_message_ready"'): "a channel on which programs listen with SQL",
    ("settings/sources.py", '"common.circuit_breakers.component_configs.pgmq"'): OLD_KEY,
    ("settings/refused_keys.py", '"common.pgmq_database"'): OLD_KEY,
    ("settings/refused_keys.py", '"Memcached is not supported; use backend redis or moka"'): CACHE,
    ("settings/formats.py", 'url_of("redis", "rediss", "unix")'): CACHE,
    ("settings/database.py", 'text("redis://localhost:6379", "The Redis server.", variable="REDIS_URL")'): CACHE,
    ("settings/database.py", '"Number of the Redis database."'): CACHE,
    ("settings/database.py", 'Literal["redis", "moka"] = choice("redis", "`redis`: shared'): CACHE,
    ("settings/database.py", "redis: RedisCache = table(RedisCache)"): CACHE,
    ("server/api/health.py", '"pgmq_pool": pool'): PUBLISHED,
    ("server/shapes/health.py", "pgmq_pool: PoolDetail"): PUBLISHED,
    ("services/fleet/metric_catalogue.py", '"pgmq_queue_depth": Described('): METRIC,
    ("services/fleet/metric_catalogue.py", '"pgmq_queue_max_depth": Described('): METRIC,
    ("services/fleet/metrics.py", 'Sample("pgmq_queue_depth", '): METRIC,
    ("services/fleet/metrics.py", 'Sample("pgmq_queue_max_depth", '): METRIC,
    ("cli/commands/task_submit.py", "RABBITMQ_URL=amqp://broker/ tasker task request"): EXAMPLE,
    ("cli/commands/broker.py", "tasker broker status --backend rabbitmq"): EXAMPLE,
    ("cli/commands/broker.py", "tasker broker migrate --to rabbitmq"): EXAMPLE,
}
"""(file, part of the line) -> why it may stand there."""


def lines() -> Iterator[tuple[str, str]]:
    files = [file for kind in ("py", "sql", "txt") for file in sorted((ROOT / "tasker").rglob(f"*.{kind}"))]
    for file in files:
        name = str(file.relative_to(ROOT / "tasker"))
        yield from ((name, line.strip()) for line in file.read_text("utf-8").splitlines() if WORDS.search(line))


def is_allowed(file: str, line: str) -> bool:
    return any(file == place and part in line for place, part in ALLOWED)


def test_no_module_of_the_core_names_a_backend() -> None:
    assert [f"{file}: {line}" for file, line in lines() if not is_allowed(file, line)] == []


def test_every_exception_is_still_needed() -> None:
    found = list(lines())
    assert [entry for entry in ALLOWED if not any(file == entry[0] and entry[1] in line for file, line in found)] == []


ADDED = (
    'if backend == "pgmq":',
    'if name == "memory":',
    "the memory backend",
    "import tasker_memory",
    "# as RabbitMQ does",
    "nats_url = 1",
)


@pytest.mark.parametrize("line", ADDED)
def test_a_name_that_is_added_is_found(line: str) -> None:
    assert WORDS.search(line)
    assert not is_allowed("app/serving.py", line)

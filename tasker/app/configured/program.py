"""Configuration of `App`: arguments override environment variables, which override files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tasker.app.configured import Configured, from_environment
from tasker.app.preparation import not_empty
from tasker.errors import UsageError


def configured_program(
    database_url: str | None,
    data_dir: str | Path | None,
    given: Configured | None,
    max_connections: int | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
) -> Configured:
    """Return the given configuration or that of the environment, with the database of the arguments.

    `data_dir` selects the embedded database, `max_connections` is the size of the pool. Raises `UsageError` for two
    databases, `ConfigurationError`, and `ConfigurationInvalid` with all problems.
    """
    named = not_empty(database_url)
    if named and data_dir:
        raise UsageError("data_dir is for the embedded database, and database_url names another one")
    if given is not None:
        url = given.database_url
    else:
        given = from_environment(environ=environ)
        url = environ.get("DATABASE_URL") or given.database_url
    return replace(_with_pool_size(given, max_connections), database_url=None if data_dir else named or url)


def _with_pool_size(configuration: Configured, max_connections: int | None) -> Configured:
    if max_connections is None:
        return configuration
    if max_connections < 1:
        raise UsageError(f"max_connections: expected 1 or more, got {max_connections}")
    database = configuration.database
    pool = database.pool.replace(max_connections=max_connections, min_connections=1)
    return replace(configuration, database=database.replace(pool=pool))

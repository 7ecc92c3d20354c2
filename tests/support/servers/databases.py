"""Databases of a test run: new ones on a server, and the migrated one that they are copied from."""

from __future__ import annotations

import fcntl
import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tasker.db import migrate

TEMPLATE = "tasker_test_template"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server on which tests may create databases."""

    name: str
    url: str
    cleaner: ThreadPoolExecutor
    """Drops databases of finished tests while others run."""

    def url_of(self, database: str) -> str:
        return urlsplit(self.url)._replace(path=f"/{database}").geturl()

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """A new database, dropped at the end; its URL."""
        name = f"tasker_test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.url, autocommit=True) as admin:
            # copying files is a tenth of the work of copying pages, which versions before 15 do not know
            copying = "strategy file_copy" if admin.info.server_version >= 150000 else ""
            admin.execute(f"create database {name} template {template} {copying}")
            try:
                yield self.url_of(name)
            finally:
                self.cleaner.submit(self.drop, self.url_of(name))

    def drop(self, url: str) -> None:
        """Drop a database that a test has made by its URL."""
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute(f"drop database if exists {urlsplit(url).path[1:]} with (force)")

    def migrated(self, scripts: Sequence[tuple[str, str]], lock: Path) -> str:
        """Return the name of a migrated database that ends with its server; the first process that asks makes it."""
        with open(lock, "a") as making, psycopg.connect(self.url, autocommit=True) as admin:
            fcntl.flock(making, fcntl.LOCK_EX)
            if not admin.execute("select from pg_database where datname = %s", [TEMPLATE]).fetchall():
                unfinished = f"{TEMPLATE}_{os.getpid()}"
                admin.execute(f"create database {unfinished} template template0")
                migrate.upgrade(self.url_of(unfinished), scripts)
                admin.execute(f"alter database {unfinished} rename to {TEMPLATE}")
        return TEMPLATE

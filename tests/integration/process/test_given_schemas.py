"""An administrator makes the schemas, and the role of Tasker may create none: the upgrade works, or names the grant."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from tests.support.command_line import invoke
from tests.support.repository import ROOT

SCHEMAS = ("tasker", "tasker_pgmq", "pgmq")


@pytest.fixture
def role(empty_database_url: str) -> Iterator[str]:
    role = f"t{uuid4().hex[:12]}"
    with psycopg.connect(empty_database_url, autocommit=True) as admin:
        admin.execute(f"create role {role} login password 'x'".encode())
        yield role
        admin.execute(f"drop owned by {role}".encode())
        admin.execute(f"drop role {role}".encode())


@pytest.fixture
def url(empty_database_url: str, role: str) -> str:
    parts = urlsplit(empty_database_url)
    return parts._replace(netloc=f"{role}:x@{parts.netloc.rpartition('@')[2]}").geturl()


def administer(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        for statement in statements:
            admin.execute(statement.encode())


def test_schemas_that_belong_to_the_role_are_filled(empty_database_url: str, url: str, role: str) -> None:
    administer(empty_database_url, *(f"create schema {schema} authorization {role}" for schema in SCHEMAS))

    upgraded = invoke("db", "upgrade", database=url)
    assert (upgraded.exit_code, upgraded.output.splitlines()[-1].partition(": ")[2]) == (0, "upgraded")
    assert invoke("run", ROOT / "workflows" / "linear_math", database=url).exit_code == 0


def test_missing_right_to_create_schemas_is_named_and_its_grant_suffices(
    empty_database_url: str, url: str, role: str
) -> None:
    refused = invoke("db", "upgrade", database=url)
    grant = f"grant create on database {urlsplit(url).path[1:]} to {role}"
    assert refused.exit_code == 1
    assert grant in " ".join(refused.output.split())

    administer(empty_database_url, grant)
    assert invoke("db", "upgrade", database=url).exit_code == 0


def test_missing_right_in_a_schema_is_named_and_its_grant_suffices(
    empty_database_url: str, url: str, role: str
) -> None:
    administer(empty_database_url, *(f"create schema {schema}" for schema in SCHEMAS))
    for schema in ("tasker", "pgmq", "tasker_pgmq"):
        refused = invoke("db", "upgrade", database=url)
        grant = f"grant usage, create on schema {schema} to {role}"
        assert (refused.exit_code, grant in " ".join(refused.output.split())) == (1, True), refused.output
        administer(empty_database_url, grant)

    assert invoke("db", "upgrade", database=url).exit_code == 0

"""A scratch database with the SQL of the pgmq backend and a stand-in for the engine's claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest

import tasker_pgmq

if TYPE_CHECKING:
    from tests.support.servers.databases import Server

# The engine's side as far as the wrappers see it: which steps exist, a claim that takes what is enqueued, an answer
# that carries hints. `fail` makes a claim die after its messages were popped.
STAND_IN = """
create schema tasker;
create table tasker.poison_messages (
  queue_name text not null, message jsonb, reason text not null, msg_id bigint,
  moved_at timestamptz not null default now());
create table tasker.steps (step text primary key, state text not null default 'enqueued');
create function tasker.echo_v1(args jsonb) returns jsonb language sql as 'select args';
create function tasker.claim_v1(args jsonb) returns jsonb language plpgsql as $$
declare
  given text[] := array(select jsonb_array_elements_text(args->'steps'));
  claimed text[];
begin
  if args ? 'fail' then raise exception 'the worker died'; end if;
  with taken as (update tasker.steps s set state = 'in_progress'
                 where s.step = any (given) and s.state = 'enqueued' returning s.step)
  select coalesce(array_agg(step), '{}') into claimed from taken;
  return jsonb_build_object('claims', to_jsonb(claimed), 'verdicts', (
    select coalesce(jsonb_object_agg(g, case when g = any (claimed) then 'claimed'
      when exists (select from tasker.steps s where s.step = g) then 'dead' else 'unknown' end), '{}')
    from unnest(given) g), 'send', coalesce(args->'then_send', '[]'));
end $$;
"""


@pytest.fixture(scope="module")
def pgmq_dsn(server: Server) -> Iterator[str]:
    """A database of its own for each module, on each server."""
    with server.database() as url:
        install(url)
        yield url


def install(dsn: str) -> None:
    """The stand-in and the backend's scripts, as an upgrade would run them."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(STAND_IN)
        for _, script in tasker_pgmq.create({}).install_sql():
            connection.execute(script.encode())


def remove_queues(dsn: str) -> None:
    """Leave no queues, poison or steps."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select tasker_pgmq.drop_queue(queue_name) from pgmq.meta")
        connection.execute("truncate tasker.poison_messages, tasker.steps")


@pytest.fixture
def empty_pgmq(pgmq_dsn: str) -> str:
    """The database without queues, poison or steps."""
    remove_queues(pgmq_dsn)
    return pgmq_dsn


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts a broker of its own again is left to `make test-servers`."""
    for item in items:
        if item.name.startswith("test_after_a_restart") and item.path.name != "test_pgmq_backend.py":
            item.add_marker(pytest.mark.servers)

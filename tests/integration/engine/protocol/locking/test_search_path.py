"""Whatever schemas a session searches, the engine uses the server's functions and operators and its own tables."""

from __future__ import annotations

import psycopg
import pytest

from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tests.support.engine_fixture import Lab, Session, change, fail, ok, operator, retry
from tests.support.random_plans import Spec

LOUD = """create function intruder.%s language plpgsql as
  $$ begin raise exception 'a function of the schema `intruder` was called'; end $$"""
FUNCTIONS = (
    "cardinality(anyarray) returns int",
    "jsonb_array_length(jsonb) returns int",
    "jsonb_array_elements_text(jsonb) returns setof text",
    "array_position(anycompatiblearray, anycompatible) returns int",
    "replace(text, text, text) returns text",
    "length(text) returns int",
    "current_setting(text) returns text",
    "current_setting(text, boolean) returns text",
    "pg_notify(text, text) returns void",
    "now() returns timestamptz",
    "equal(uuid, uuid) returns boolean",
    "equal(text, text) returns boolean",
    "equal(int, int) returns boolean",
    "add(timestamptz, interval) returns timestamptz",
)
OPERATORS = ("= (uuid, uuid)", "= (text, text)", "= (int, int)", "+ (timestamptz, interval)")
INTRUDED = "-c search_path=intruder,pg_catalog"


@pytest.fixture
def intruded(lab: Lab) -> Lab:
    """A database with a schema full of namesakes, and sessions that search it before the server's own."""
    watch = lab.observer
    watch.execute("create schema intruder")
    for function in FUNCTIONS:
        watch.execute(LOUD % function)
    for described in OPERATORS:
        symbol, left, right = described.replace("(", "").replace(")", "").replace(",", "").split()
        name = "equal" if symbol == "=" else "add"
        watch.execute(
            f"create operator intruder.{symbol} (leftarg = {left}, rightarg = {right}, function = intruder.{name})"
        )
    for name in ("one", "two"):
        setattr(lab, name, lab.session(options=INTRUDED))
    return lab


def test_the_namesakes_are_found_by_who_does_not_take_care(intruded: Lab) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="intruder"):
        intruded.one.value("select cardinality(array[1])")


def test_tasks_run_in_sessions_that_search_other_schemas_first(intruded: Lab) -> None:
    lab = intruded
    lab.one.start_worker()
    plan = lab.plan(Spec("a"), Spec("b"), Spec("c"), Spec("d", depends_on=("a", "b")), Spec("e", depends_on=("c",)))
    task, claims = lab.running(plan)
    lab.one.advance(ok(claims["a"]), retry(claims["b"], delay_ms=0), fail(claims["c"]))
    lab.two.call("due", lab.two.args(slots=1))
    lab.one.call("operator_change", {"task": task, "step": "c", "kind": "reset"})
    lab.one.call("pause", {"namespace": lab.namespace, "actor": "ops", "reason": ""})
    assert not lab.two.claim()
    lab.one.call("resume", {"namespace": lab.namespace, "actor": "ops", "reason": ""})
    lab.two.call("backlog", lab.two.args())
    for claim in lab.running_claims(task).values():
        lab.one.core("begin", {**held(lab.one, claim), "timeout_ms": 1000})
        lab.one.core("checkpoint", {**held(lab.one, claim), "cursor": 1})
    for function, args in {
        "repair": {"every_ms": 0},
        "sweep": {},
        "failure_bursts": {"failures": 100, "window_seconds": 60, "resume_seconds": 0, "pauses": "step"},
        "reconcile": {"worker": lab.one.worker, "held": []},
        "depth": {"namespace": lab.namespace},
        "paused": {},
    }.items():
        lab.two.core(function, args)
    lab.two.advance(*(change("release", claim) for claim in lab.running_claims(task).values()))
    parked = lab.one.claim()
    lab.one.core("park", {"worker": lab.one.worker, "items": [ok(claim) for claim in parked]})
    lab.two.advance(*(change("ok", claim) for claim in parked))
    lab.one.run_all()
    assert lab.task(task).state == "complete"
    template = lab.task(task).template_id
    direct = {"id": new_task_uuid(), "identity": "without a queue in this database"}
    assert lab.one.core("submit", {"template": template, "tasks": [direct]})["created"] == [direct["id"]]
    other = lab.submit_one(plan)
    lab.one.advance(operator("resolve", lab.steps(other)["a"]))
    lab.one.call("cancel", {"task": other, "reason": "", "actor": ""})


def test_every_function_that_sessions_of_others_may_call_sets_its_path(lab: Lab) -> None:
    without = """select p.proname::text from pg_proc p
      where p.pronamespace = 'tasker'::regnamespace and p.proname ~ '_v[0-9]+$' and p.proname <> 'uuid_v7'
        and not exists (select from unnest(p.proconfig) c where c like 'search_path=%%') order by 1"""
    excused = ["submit_and_wake_v1"]  # a procedure with a path of its own cannot commit
    assert [row[0] for row in lab.observer.rows(without)] == excused


async def test_the_engine_s_own_sessions_search_no_schema_of_a_user(intruded: Lab) -> None:
    connection = Connection(f"{intruded.url}{'&' if '?' in intruded.url else '?'}options=-csearch_path%3Dintruder")
    try:
        assert await connection.execute("select pg_catalog.current_setting('search_path')") == [("pg_catalog,pg_temp",)]
    finally:
        await connection.close()


def held(session: Session, claim: dict[str, object]) -> dict[str, object]:
    return {"worker": session.worker, "step": claim["step"], "token": claim["token"]}

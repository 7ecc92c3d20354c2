"""The wrappers that join the engine's functions with the queues, on real connections."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def db(empty_pgmq: str) -> Iterator[Connection]:
    with psycopg.connect(empty_pgmq, autocommit=True) as connection:
        yield connection


@pytest.fixture
def other(empty_pgmq: str) -> Iterator[Connection]:
    with psycopg.connect(empty_pgmq, autocommit=True) as connection:
        yield connection


def hints(count: int, namespace: str = "pay") -> list[dict[str, Any]]:
    return [{"namespace": namespace, "step": str(uuid4()), "task": str(uuid4())} for _ in range(count)]


def enqueue(db: Connection, entries: list[dict[str, Any]]) -> None:
    """Steps that exist and wait, as a change of the engine leaves them."""
    db.cursor().executemany("insert into tasker.steps (step) values (%s)", [(entry["step"],) for entry in entries])
    call(db, "echo_v1", {"send": entries})


def call(db: Connection, fn: str, args: dict[str, Any]) -> Any:
    return value(db, "select tasker_pgmq.call_v1(%s, %s::jsonb)", fn, json.dumps(args))


def claim(db: Connection, slots: int, *namespaces: str, **more: Any) -> Any:
    limits = {"timeout_ms": 30_000, "grace_ms": 10_000, "max_claim_bytes": 16_777_216, "window": 2000}
    args = {"namespaces": namespaces, "slots": slots, **limits, **more}
    return value(db, "select tasker_pgmq.claim_v1(%s::jsonb)", json.dumps(args))


def missing(db: Connection, namespace: str, *steps: str) -> set[str]:
    rows = db.execute("select tasker_pgmq.missing_v1(%s, %s::uuid[])", (namespace, list(steps))).fetchall()
    return {str(row[0]) for row in rows}


def value(db: Connection, query: str, *params: Any) -> Any:
    row = db.execute(query.encode(), params).fetchone()
    assert row is not None
    return row[0]


def depth(db: Connection, namespace: str = "pay") -> int:
    query = sql.SQL("select count(*) from {}").format(sql.Identifier("pgmq", f"q_worker_{namespace.lower()}_queue"))
    row = db.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def poison(db: Connection) -> list[tuple[Any, ...]]:
    return db.execute("select queue_name, message, reason from tasker.poison_messages order by msg_id").fetchall()


class TestCall:
    def test_hints_are_sent_and_replaced_by_their_number_per_namespace(self, db: Connection) -> None:
        answer = call(db, "echo_v1", {"send": hints(3) + hints(2, "ship"), "claims": [1]})
        assert answer == {"sent": {"pay": 3, "ship": 2}, "claims": [1]}
        assert (depth(db, "pay"), depth(db, "ship")) == (3, 2)

    def test_a_message_holds_the_two_ids_alone(self, db: Connection) -> None:
        (entry,) = hints(1)
        call(db, "echo_v1", {"send": [entry | {"extra": 1}]})
        message = value(db, "select message from pgmq.read('worker_pay_queue', 30, 1)")
        assert message == {"step_uuid": entry["step"], "task_uuid": entry["task"]}

    @pytest.mark.parametrize("answer", [{}, {"send": []}, {"send": None}])
    def test_nothing_to_send_makes_no_queue(self, db: Connection, answer: dict[str, Any]) -> None:
        assert call(db, "echo_v1", answer) == {"sent": {}}
        assert value(db, "select count(*) from pgmq.meta") == 0

    def test_the_change_and_its_messages_are_undone_together(self, db: Connection) -> None:
        call(db, "echo_v1", {"send": hints(1)})
        with db.transaction(force_rollback=True):
            call(db, "echo_v1", {"send": hints(5)})
        assert depth(db) == 1

    def test_a_delayed_hint_is_not_taken_before_it_is_due(self, db: Connection) -> None:
        now, later = hints(2)
        enqueue(db, [now, later | {"delay_ms": 60_000}])
        assert claim(db, 10, "pay")["claims"] == [now["step"]]
        db.execute("update pgmq.q_worker_pay_queue set vt = vt - interval '61 seconds'")
        assert claim(db, 10, "pay")["claims"] == [later["step"]]

    @pytest.mark.parametrize("fn", ["advance", "a_v1; drop table x", "Echo_v1", "echo_v1\n", "public.a_v1", "", None])
    def test_only_names_of_engine_functions_are_called(self, db: Connection, fn: str | None) -> None:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="is not the name of an engine function"):
            value(db, "select tasker_pgmq.call_v1(%s, '{}')", fn)

    def test_namespaces_that_differ_only_in_case_never_share_a_queue(self, db: Connection) -> None:
        call(db, "echo_v1", {"send": hints(1, "Pay")})
        with pytest.raises(psycopg.errors.DuplicateTable, match="differs only in upper and lower case"):
            call(db, "echo_v1", {"send": hints(1, "pay")})
        assert claim(db, 5, "pay")["popped"] == 0

    def test_a_queue_made_by_plain_pgmq_is_used_as_it_is(self, db: Connection) -> None:
        (entry,) = hints(1)
        db.execute("insert into tasker.steps values (%s)", (entry["step"],))
        db.execute("select pgmq.create('worker_pay_queue')")
        payload = json.dumps({"step_uuid": entry["step"].upper(), "task_uuid": entry["task"]})
        db.execute("select pgmq.send('worker_pay_queue', %s::jsonb)", (payload,))
        assert claim(db, 5, "pay")["claims"] == [entry["step"]]

    def test_a_queue_dropped_by_plain_pgmq_is_made_again(self, db: Connection) -> None:
        call(db, "echo_v1", {"send": hints(1)})
        db.execute("select pgmq.drop_queue('worker_pay_queue')")
        assert claim(db, 5, "pay")["popped"] == 0
        assert call(db, "echo_v1", {"send": hints(2)}) == {"sent": {"pay": 2}}
        assert depth(db) == 2

    def test_two_racing_senders_make_a_queue_once(self, empty_pgmq: str) -> None:
        senders = 6
        together = threading.Barrier(senders)

        def send(_: int) -> Any:
            with psycopg.connect(empty_pgmq) as connection:
                together.wait()
                return call(connection, "echo_v1", {"send": hints(5)})

        with ThreadPoolExecutor(senders) as pool:
            answers = list(pool.map(send, range(senders)))
        assert answers == [{"sent": {"pay": 5}}] * senders
        with psycopg.connect(empty_pgmq) as connection:
            assert depth(connection) == 5 * senders
            assert value(connection, "select count(*) from pgmq.meta") == 1

    def test_a_second_sender_waits_for_the_first_creator_and_finds_the_queue(
        self, db: Connection, other: Connection, on_thread: Callable[..., Any]
    ) -> None:
        with db.transaction():
            call(db, "echo_v1", {"send": hints(1)})
            second = on_thread(call, other, "echo_v1", {"send": hints(1)})
            wait_until_blocked(db, other)
        assert second.result(timeout=30) == {"sent": {"pay": 1}}
        assert depth(db) == 2


class TestClaim:
    def test_hints_are_popped_in_order_and_their_steps_claimed(self, db: Connection) -> None:
        entries = hints(5)
        enqueue(db, entries)
        answer = claim(db, 3, "pay", worker="w")
        assert sorted(answer["claims"]) == sorted(entry["step"] for entry in entries[:3])
        assert (answer["popped"], answer["sent"], depth(db)) == (3, {}, 2)

    def test_a_missing_queue_is_an_empty_one(self, db: Connection) -> None:
        assert claim(db, 3, "nowhere") == {"claims": [], "verdicts": {}, "sent": {}, "popped": 0}

    @pytest.mark.parametrize("namespaces", [(), ("pay",)])
    def test_without_a_free_slot_nothing_is_popped(self, db: Connection, namespaces: tuple[str, ...]) -> None:
        enqueue(db, hints(2))
        assert claim(db, 0, *namespaces)["popped"] == 0
        assert depth(db) == 2

    def test_a_claim_without_slots_or_namespaces_says_what_it_needs(self, db: Connection) -> None:
        for args in ({"slots": 1}, {"namespaces": ["pay"]}, {"slots": 1, "namespaces": "pay"}):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match='needs "slots" and "namespaces"'):
                value(db, "select tasker_pgmq.claim_v1(%s::jsonb)", json.dumps(args))

    def test_what_a_claim_answers_to_send_is_sent(self, db: Connection) -> None:
        assert claim(db, 1, "pay", then_send=hints(2, "ship"))["sent"] == {"ship": 2}
        assert depth(db, "ship") == 2

    def test_a_crash_between_pop_and_claim_loses_nothing(self, db: Connection) -> None:
        (entry,) = hints(1)
        enqueue(db, [entry])
        with pytest.raises(psycopg.errors.RaiseException, match="the worker died"):
            claim(db, 5, "pay", fail=True)
        assert claim(db, 5, "pay")["claims"] == [entry["step"]]

    def test_a_message_popped_by_a_transaction_that_dies_comes_back(self, db: Connection, other: Connection) -> None:
        (entry,) = hints(1)
        enqueue(db, [entry])
        with db.transaction(force_rollback=True):
            assert claim(db, 5, "pay")["popped"] == 1
            assert claim(other, 5, "pay")["popped"] == 0
        assert claim(other, 5, "pay")["claims"] == [entry["step"]]

    def test_a_hint_committed_while_the_claim_begins_is_claimed_not_lost(
        self, db: Connection, other: Connection, on_thread: Callable[..., Any]
    ) -> None:
        """The claim's statement starts before the step's row exists; the message it then pops must find the row."""
        enqueue(db, hints(1, "first"))
        (entry,) = hints(1, "second")
        with db.transaction():
            enqueue(db, [entry])
            db.execute("lock table pgmq.q_worker_first_queue in access exclusive mode")
            pending = on_thread(claim, other, 10, "first", "second", turn=0)
            wait_until_blocked(db, other)
        answer = pending.result(timeout=30)
        assert entry["step"] in answer["claims"]
        assert set(answer["verdicts"].values()) == {"claimed"}

    def test_concurrent_claimers_get_disjoint_sets(self, db: Connection, empty_pgmq: str) -> None:
        entries = hints(120)
        enqueue(db, entries)
        claimers = 6
        together = threading.Barrier(claimers)

        def take(_: int) -> list[str]:
            with psycopg.connect(empty_pgmq, autocommit=True) as connection:
                together.wait()
                return [step for _ in range(4) for step in claim(connection, 5, "pay")["claims"]]

        with ThreadPoolExecutor(claimers) as pool:
            claimed = [step for part in pool.map(take, range(claimers)) for step in part]
        assert sorted(claimed) == sorted(entry["step"] for entry in entries)

    def test_each_namespace_gets_its_share(self, db: Connection) -> None:
        enqueue(db, hints(50, "busy"))
        enqueue(db, hints(50, "calm"))
        claim(db, 10, "busy", "calm")
        assert (depth(db, "busy"), depth(db, "calm")) == (45, 45)

    def test_slots_that_one_namespace_leaves_go_to_the_others(self, db: Connection) -> None:
        enqueue(db, hints(50, "busy"))
        enqueue(db, hints(1, "calm"))
        for turn in (0, 1):
            assert claim(db, 10, "busy", "calm", "nowhere", turn=turn)["popped"] == 10
        assert (depth(db, "busy"), depth(db, "calm")) == (31, 0)

    def test_with_one_slot_the_turn_says_who_is_first(self, db: Connection) -> None:
        enqueue(db, hints(2, "a"))
        enqueue(db, hints(2, "b"))
        claim(db, 1, "a", "b", turn=0)
        assert (depth(db, "a"), depth(db, "b")) == (1, 2)
        claim(db, 1, "a", "b", turn=1)
        assert (depth(db, "a"), depth(db, "b")) == (1, 1)

    def test_with_one_slot_and_no_turn_nobody_is_always_first(self, db: Connection) -> None:
        enqueue(db, hints(100, "a"))
        enqueue(db, hints(100, "b"))
        claims = 0
        while 100 in (depth(db, "a"), depth(db, "b")) and claims < 100:
            claim(db, 1, "a", "b")
            claims += 1

        assert claims < 100, "one of them starves"

    @pytest.mark.parametrize(
        ("message", "reason"),
        [
            ("5", "not a JSON object"),
            ('"text"', "not a JSON object"),
            ("null", "not a JSON object"),
            ('["step_uuid"]', "not a JSON object"),
            ("{}", "no valid step_uuid"),
            ('{"step_uuid": null}', "no valid step_uuid"),
            ('{"step_uuid": 7}', "no valid step_uuid"),
            ('{"step_uuid": {"a": 1}}', "no valid step_uuid"),
            ('{"step_uuid": "zzz"}', "no valid step_uuid"),
            ('{"step_uuid": "00000000-0000-0000-0000-00000000000g"}', "no valid step_uuid"),
            ('{"step_uuid": "00000000-0000-0000-0000-000000000000\\n"}', "no valid step_uuid"),
            ('{"raw": "bm90IGpzb24="}', "no valid step_uuid"),
        ],
    )
    def test_a_poison_message_is_moved_aside_and_the_rest_goes_on(
        self, db: Connection, message: str, reason: str
    ) -> None:
        good = hints(2)
        enqueue(db, good[:1])
        db.execute("select pgmq.send('worker_pay_queue', %s::jsonb)", (message,))
        enqueue(db, good[1:])
        answer = claim(db, 10, "pay")
        assert sorted(answer["claims"]) == sorted(entry["step"] for entry in good)
        assert answer["popped"] == 3
        assert poison(db) == [("worker_pay_queue", json.loads(message), reason)]
        assert depth(db) == 0

    def test_a_message_that_is_null_is_poison(self, db: Connection) -> None:
        enqueue(db, hints(1))
        db.execute("insert into pgmq.q_worker_pay_queue (vt, message) values (now(), null)")
        assert claim(db, 10, "pay")["popped"] == 2
        assert [row[0] for row in poison(db)] == ["worker_pay_queue"]

    def test_poison_is_not_moved_when_the_claim_fails(self, db: Connection) -> None:
        call(db, "echo_v1", {"send": [{"namespace": "pay", "step": "zzz", "task": "zzz"}]})
        with pytest.raises(psycopg.errors.RaiseException):
            claim(db, 10, "pay", fail=True)
        assert (poison(db), depth(db)) == ([], 1)

    def test_a_hint_to_an_unknown_step_is_moved_aside(self, db: Connection) -> None:
        known, (stranger,) = hints(1, "pay"), hints(1, "ship")
        enqueue(db, known)
        call(db, "echo_v1", {"send": [stranger]})
        answer = claim(db, 10, "pay", "ship")
        assert answer["verdicts"] == {known[0]["step"]: "claimed", stranger["step"]: "unknown"}
        assert poison(db) == [("worker_ship_queue", {"step_uuid": stranger["step"]}, "unknown step")]

    def test_a_doubled_hint_claims_once_and_is_consumed(self, db: Connection) -> None:
        (entry,) = hints(1)
        enqueue(db, [entry])
        call(db, "echo_v1", {"send": [entry]})
        assert claim(db, 10, "pay")["claims"] == [entry["step"]]
        call(db, "echo_v1", {"send": [entry]})
        assert claim(db, 10, "pay")["verdicts"] == {entry["step"]: "dead"}
        assert (depth(db), poison(db)) == (0, [])


class TestMissing:
    def test_steps_without_a_message_are_found(self, db: Connection) -> None:
        there, gone = hints(2)
        enqueue(db, [there])
        assert missing(db, "pay", there["step"], gone["step"]) == {gone["step"]}

    def test_without_a_queue_all_are_missing(self, db: Connection) -> None:
        (entry,) = hints(1)
        assert missing(db, "nowhere", entry["step"]) == {entry["step"]}

    def test_a_message_that_an_open_transaction_has_taken_is_not_missing(
        self, db: Connection, other: Connection
    ) -> None:
        (entry,) = hints(1)
        enqueue(db, [entry])
        with db.transaction():
            claim(db, 5, "pay")
            assert missing(other, "pay", entry["step"]) == set()
        assert missing(other, "pay", entry["step"]) == {entry["step"]}

    def test_poison_in_the_queue_does_not_disturb(self, db: Connection) -> None:
        (entry,) = hints(1)
        enqueue(db, [entry])
        db.execute("select pgmq.send('worker_pay_queue', '[1]')")
        assert missing(db, "pay", entry["step"]) == set()


def test_popping_reads_the_queue_by_index_and_keeps_no_sort(db: Connection) -> None:
    enqueue(db, hints(3))
    db.execute("set enable_seqscan = off")
    plan = db.execute(
        "explain select msg_id from pgmq.q_worker_pay_queue where vt <= clock_timestamp() order by msg_id limit 10"
    ).fetchall()
    text = "\n".join(row[0] for row in plan)
    assert "q_worker_pay_queue_pkey" in text
    assert "Sort" not in text


@pytest.fixture
def on_thread() -> Iterator[Callable[..., Any]]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit


def wait_until_blocked(db: Connection, blocked: Connection) -> None:
    """Return once the other connection waits for a lock; the server tells, no clock is involved."""
    while not value(db, "select cardinality(pg_blocking_pids(%s)) > 0", blocked.info.backend_pid):
        pass


def test_with_the_real_engine_a_hint_to_an_unknown_step_is_moved_aside(database_url: str) -> None:
    (stranger,) = hints(1)
    with psycopg.connect(database_url, autocommit=True) as db:
        value(db, "select tasker_pgmq.put('pay', %s::jsonb)", json.dumps([stranger, stranger]))
        answer = claim(db, 10, "pay", worker=str(uuid4()))
        assert (answer["popped"], depth(db)) == (2, 0)
        assert poison(db) == [("worker_pay_queue", {"step_uuid": stranger["step"]}, "unknown step")] * 2

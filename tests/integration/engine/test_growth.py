"""What a call costs grows with what it is about, and no faster: the work for a case and for one four times as large."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from tasker.db.sql_files import query
from tasker.services.tasks.lists import TaskFilter, TaskLists
from tasker.services.tasks.read import REPORT
from tests.benchmarks.growth.services import letters_of
from tests.support.copies import copy_task
from tests.support.engine_fixture import Direct, Item, Lab, change, fail, new_step, ok, retry
from tests.support.fleets.work import FACTOR, Work, assert_linear, is_linear, undisturbed, work_of
from tests.support.random_plans import BATCHABLE, DECISION, DEFERRED, WORKER, Spec
from tests.support.waiting import until

SMALL = 60
LARGE = SMALL * FACTOR


@pytest.fixture
def lab(module_lab: Lab) -> Lab:
    return module_lab


def batches(lab: Lab) -> Any:
    return lab.plan(
        Spec("cut", BATCHABLE), Spec("work", WORKER, ("cut",)), Spec("sum", DEFERRED, ("work",)), name="batches"
    )


def cut_into(lab: Lab, claim: Item, count: int) -> Item:
    """The batchable step's result that creates so many workers and the step that joins them."""
    plan = batches(lab)
    workers = [
        {**new_step(plan, "work", "cut"), "name": f"work_{i:03}", "inputs": {"n": i}, "batch": True}
        for i in range(count)
    ]
    return ok(claim, gv=0, x=[*workers, new_step(plan, "sum", *(str(worker["name"]) for worker in workers))])


@pytest.mark.parametrize("work_mem", ["64kB", "64MB"])
def test_cutting_into_batches_takes_work_for_each_batch(lab: Lab, work_mem: str) -> None:
    lab.one.execute(f"set work_mem to '{work_mem}'")

    def cut(count: int) -> Work:
        _, claims = lab.running(batches(lab))
        item = cut_into(lab, claims["cut"], count)
        work = work_of(lab.one, lambda: lab.one.advance(item))
        lab.one.run_all()
        return work

    assert_linear(cut(SMALL), cut(LARGE))


def test_a_decision_in_a_large_task_reads_none_of_the_steps_that_it_has_nothing_to_do_with(lab: Lab) -> None:
    def decide(others: int) -> Work:
        plan = lab.plan(
            Spec("choice", DECISION),
            Spec("branch", depends_on=("choice",)),
            *(Spec(f"other_{i}") for i in range(others)),
            name=f"wide{others}",
        )
        _, claims = lab.running(plan)
        item = ok(claims.pop("choice"), gv=0, x=[new_step(plan, "branch", "choice")])
        work = work_of(lab.one, lambda: lab.one.advance(item))
        lab.one.finish(*claims.values())
        lab.one.run_all()
        return work

    small, large = decide(5), decide(SMALL)

    assert large.pages <= small.pages * 1.5, (small.pages_of, large.pages_of)
    assert large.rows <= small.rows * 1.5, large.heaviest


def test_the_room_in_the_queue_is_counted_once_for_all_steps_that_become_ready(lab: Lab) -> None:
    def open_up(width: int) -> Work:
        plan = lab.plan(Spec("a"), *(Spec(f"b{i}", depends_on=("a",)) for i in range(width)), name=f"fan{width}")
        _, claims = lab.running(plan)
        work = work_of(lab.one, lambda: lab.one.finish(claims["a"]))
        lab.one.run_all()
        return work

    small, large = open_up(SMALL // 4), open_up(SMALL)

    assert large.pages_of["enqueue_counters"] <= small.pages_of["enqueue_counters"] + 5


def wide(lab: Lab, width: int) -> tuple[str, list[Item]]:
    """A task of so many steps side by side that one step joins, all but that one running; each has failed once."""
    names = [f"s{i:03}" for i in range(width)]
    task = lab.submit_one(lab.plan(*map(Spec, names), Spec("end", depends_on=tuple(names)), name=f"wide{width}"))
    lab.one.advance(*(retry(claim, delay_ms=0) for claim in lab.one.claim(width)))
    lab.one.call("due", lab.one.args(limit=width))
    lab.one.execute("set enable_seqscan to off")  # as where tables are large
    return task, lab.one.claim(width)


def reading(lab: Lab, file: str, name: str, **params: Any) -> Callable[[str], Callable[[], Any]]:
    """The call of a query about a task."""
    text = REPORT if name == "report" else query(file, name)
    return lambda task: lambda: lab.one.connection.execute(text, {"task": task, **params}).fetchall()


@pytest.mark.parametrize(
    ("file", "name", "params"),
    [
        ("tasks", "report", {}),
        ("tasks", "progress", {"since": None, "results_queue": "worker_results"}),
        ("tasks", "history", {"limit": None, "offset": 0}),
        ("client", "steps", {"step": None, "results": True, "limit": None, "offset": 0}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_reading_a_wide_task_takes_work_for_each_step(
    lone_lab: Lab, file: str, name: str, params: dict[str, Any]
) -> None:
    """Among many small ones, which is what the statistics then tell of."""
    lab = lone_lab
    lab.submit(lab.chain(1), *({} for _ in range(LARGE)))
    lab.one.run_all()
    tasks = [wide(lab, width)[0] for width in (SMALL, LARGE)]
    lab.one.execute("vacuum analyze")  # no old versions of rows, which one of them might have more of
    read = reading(lab, file, name, **params)

    assert_linear(*(work_of(lab.one, read(task)) for task in tasks))


def test_progress_asks_of_no_step_whether_it_waits_for_a_worker_while_all_are_served(lone_lab: Lab) -> None:
    lab = lone_lab
    lab.one.start_worker()

    def look(width: int) -> Work:
        lab.one.execute("set enable_seqscan to off")  # as where tables are large
        lab.window = 1
        task = lab.submit_one(lab.plan(*(Spec(f"s{n:03}") for n in range(width)), name=f"held{width}"))
        lab.window = 2000
        moment = lab.observer.value("select pg_catalog.now() + interval '1 hour'")
        return work_of(lab.one, reading(lab, "tasks", "progress", since=moment, results_queue="worker_results")(task))

    small, large = look(SMALL), look(LARGE)

    of_backlog = [work.pages_of.get("ready_backlog_pkey", 0) for work in (small, large)]
    assert of_backlog[1] <= of_backlog[0] + 2, (small.pages_of, large.pages_of)


def test_reading_parked_results_of_a_wide_task_takes_work_for_those_alone(lab: Lab) -> None:
    def park(width: int) -> Work:
        _, claims = wide(lab, width)
        some = [ok(claim) for claim in claims[: SMALL // 2]]
        lab.one.core("park", {"worker": lab.one.worker, "items": some})
        return work_of(lab.one, lambda: lab.one.core("parked", {"steps": [item["s"] for item in some]}))

    small, large = park(SMALL), park(LARGE)

    assert large.pages <= small.pages * 2, (small.pages_of, large.pages_of)
    assert large.rows <= small.rows * 2, large.heaviest


def test_a_claim_reads_the_results_that_its_steps_may_read_and_no_other_of_the_task(lab: Lab) -> None:
    def claim(width: int) -> Work:
        names = [f"s{i:03}" for i in range(width)]
        pairs = [Spec(f"t{i:03}", depends_on=(name,)) for i, name in enumerate(names)]
        lab.submit_one(lab.plan(*map(Spec, names), *pairs, name=f"pairs{width}"))
        lab.one.finish(*lab.one.claim(width))
        work = work_of(lab.one, lambda: lab.one.claim(20))
        lab.one.run_all()
        return work

    small, large = claim(SMALL), claim(LARGE)

    assert large.pages <= small.pages * 2, (small.pages_of, large.pages_of)
    assert large.rows <= small.rows * 2, large.heaviest


def joined(width: int) -> list[Spec]:
    names = [f"s{i}" for i in range(width)]
    return [Spec("first"), *(Spec(name, depends_on=("first",)) for name in names), Spec("last", depends_on=(*names,))]


def strands(count: int, length: int) -> list[Spec]:
    """So many chains, whose steps alternate."""
    return [Spec(f"s{i}", depends_on=(f"s{i - count}",) if i >= count else ()) for i in range(length)]


@pytest.mark.parametrize("shape", [joined, partial(strands, 1), partial(strands, 2)], ids=["fan", "chain", "chains"])
def test_registering_a_template_takes_work_for_each_step(lone_lab: Lab, shape: Callable[[int], list[Spec]]) -> None:
    """Whatever the statistics know, who have seen small templates only."""
    lab = lone_lab
    lab.submit(lab.chain(4))
    lab.one.run_all()
    lab.one.execute("analyze")

    def register(length: int) -> Work:
        plan = lab.plan(*shape(length), name=f"large{length}")
        args = {"hash": plan.hash, "plan": json.loads(plan.to_json())}
        return work_of(lab.one, lambda: lab.one.core("register_template", args))

    assert_linear(register(4 * SMALL), register(4 * LARGE))


def test_the_results_above_the_end_of_a_chain_are_found_step_by_step(lab: Lab) -> None:
    def inputs(length: int) -> Work:
        task = lab.submit_one(lab.chain(length, name=f"chain{length}"))
        lab.one.run_all()
        last = lab.steps(task)[f"s{length - 1}"].workflow_step_uuid
        answer: dict[str, Any] = {}
        work = work_of(lab.one, lambda: answer.update(lab.one.core("inputs", {"steps": [str(last)]})))
        assert len(answer["results"][task]) == length - 1
        return work

    assert_linear(inputs(SMALL // 4), inputs(SMALL))


@pytest.mark.parametrize("wide", [False, True], ids=["tasks", "steps"])
@pytest.mark.parametrize("kind", ["ok", "fail", "release", "stale", "reset"])
def test_a_batch_takes_work_for_each_of_its_changes(lone_lab: Lab, kind: str, wide: bool) -> None:
    """Of many tasks, or of one with many steps; `stale` are results that all are refused."""
    lab = lone_lab

    def bring(count: int) -> Work:
        plan = lab.plan(*(Spec(f"s{i}") for i in range(count if wide else 1)), name=f"flow{count}")
        lab.submit(plan, *({} for _ in range(1 if wide else count)))
        claims = lab.one.claim(slots=count)
        assert len(claims) == count
        if kind == "reset":
            lab.one.advance(*(fail(claim) for claim in claims))
        tokens = {"k": claims[0]["token"] + 9} if kind == "stale" else {"k": None} if kind == "reset" else {}
        items = [{**change("ok" if kind == "stale" else kind, claim, n={}), **tokens} for claim in claims]
        work = work_of(lab.one, lambda: lab.one.advance(*items))
        lab.one.claim(slots=count)
        return work

    bring(SMALL)  # the first write finds empty tables
    assert_linear(*undisturbed_pair(lab, bring))


@pytest.mark.parametrize("wide", [False, True], ids=["tasks", "steps"])
@pytest.mark.parametrize("known", [0, 1])
def test_a_batch_takes_work_for_each_of_its_changes_whatever_old_statistics_say(
    lone_lab: Lab, known: int, wide: bool
) -> None:
    """Statistics were made when there were no tasks yet, or a single one."""
    lab = lone_lab
    lab.submit(lab.chain(1, name="first"), *({} for _ in range(known)))
    lab.one.execute("vacuum analyze")
    session = lab.session()

    def bring(kind: str, count: int) -> Work:
        plan = lab.plan(*(Spec(f"s{i}") for i in range(count if wide else 1)), name=f"flow{count}")
        lab.submit(plan, *({} for _ in range(1 if wide else count)))
        claims = session.claim(slots=count)
        work = work_of(session, lambda: session.advance(*(change(kind, claim, n={}) for claim in claims)))
        session.claim(slots=count)
        return work

    for kind in ("ok", "fail", "release"):
        bring(kind, SMALL)
        assert_linear(*undisturbed_pair(lab, partial(bring, kind)))


def undisturbed_pair(lab: Lab, bring: Callable[[int], Work]) -> tuple[Work, Work]:
    """The work for both sizes; the last that was measured when none of them was linear."""
    for _ in undisturbed(lab.observer):
        small, large = bring(SMALL), bring(LARGE)
        if is_linear(small, large):
            break
    return small, large


def listing(lab: Lab, wanted: TaskFilter) -> Work:
    """What a page of a list, and the number beside it, cost."""
    lists = TaskLists(Direct(lab.one))
    lab.one.execute("set enable_seqscan to off")  # as where tables are large
    lab.one.execute("vacuum tasker.tasks")  # which takes those that ended from the index of open ones

    def ask() -> None:
        asyncio.run(lists.page(wanted, limit=5))
        asyncio.run(lists.count(wanted, 10))

    return work_of(lab.one, ask)


@pytest.mark.parametrize("status", ["error", "cancelled", "steps_in_process", "waiting_for_retry"])
def test_tasks_of_a_state_are_found_without_reading_those_that_are_complete(lone_lab: Lab, status: str) -> None:
    lab = lone_lab
    lab.submit(lab.chain(1), *({} for _ in range(SMALL)))
    lab.one.run_all()
    few = listing(lab, TaskFilter(status=status))
    lab.submit(lab.chain(1), *({} for _ in range(3 * SMALL)))
    lab.one.run_all()
    many = listing(lab, TaskFilter(status=status))

    assert many.pages <= few.pages + 5, (few.pages_of, many.pages_of)
    assert many.rows <= few.rows + 5, many.heaviest


def test_a_list_and_its_number_read_no_tasks_but_those_they_show(lone_lab: Lab) -> None:
    lab = lone_lab
    rare: dict[str, Any] = {"initiator": "rare", "source_system": "rare", "tags": ["rare", "web"]}
    which = [*({name: value} for name, value in rare.items()), {"template": "rare"}, {"template": "none"}, {}]

    def submit(count: int) -> list[Work]:
        lab.submit(lab.chain(1, name="common"), *({"tags": ["web"], "initiator": "web"} for _ in range(count)))
        lab.one.execute("analyze")
        return [listing(lab, TaskFilter(**each)) for each in which]

    lab.submit(lab.chain(1, name="rare"), rare)
    for wanted, few, many in zip(which, submit(SMALL), submit(20 * SMALL), strict=True):
        assert many.pages <= few.pages + 20, (wanted, few.pages_of, many.pages_of)
        assert many.rows <= few.rows + 20, (wanted, many.heaviest)


def test_a_tag_that_no_task_has_any_more_is_not_looked_for_in_every_task(lone_lab: Lab) -> None:
    """The statistics are of the time when all tasks had it."""
    lab = lone_lab
    lab.submit(lab.chain(1), *({"tags": ["gone"]} for _ in range(SMALL)))
    lab.one.execute("analyze")
    lab.one.execute("update tasker.task_details set tags = '{}'")
    task = lab.submit_one(lab.chain(1), tags=["gone"])
    few = listing(lab, TaskFilter(tags=["gone"], status="pending"))
    copy_task(lab.one, task, 20 * SMALL, {"task_details.tags": "'{}'"})
    many = listing(lab, TaskFilter(tags=["gone"], status="pending"))

    assert many.pages <= few.pages + 20, (few.pages_of, many.pages_of)


def test_dead_letters_are_listed_without_reading_all_tasks(lone_lab: Lab) -> None:
    """There are few, so that nobody has analyzed their table."""
    lab = lone_lab
    for table in ("tasks", "tasks_dlq"):
        lab.one.execute(f"alter table tasker.{table} set (autovacuum_enabled = false)")
    _, claims = lab.running(lab.chain(1))
    lab.one.advance(*map(fail, claims.values()))
    task = lab.submit_one(lab.chain(1))
    lab.one.run_all()

    def read() -> None:
        letters = letters_of(lab.one)
        assert len(asyncio.run(letters.list())) == 1
        assert len(asyncio.run(letters.queue())) == 1

    def work(count: int) -> Work:
        copy_task(lab.one, task, count)
        lab.one.execute("vacuum analyze tasker.tasks")
        return work_of(lab.one, read)

    few, many = work(SMALL), work(20 * SMALL)
    assert many.pages <= few.pages + 10, (few.pages_of, many.pages_of)


def test_dead_letters_are_counted_without_reading_their_snapshots(lone_lab: Lab) -> None:
    lab = lone_lab
    lab.one.execute("""insert into tasker.tasks_dlq (task_uuid, original_state, dlq_reason, task_snapshot)
        select tasker.uuid_v7(), 'pending', 'manual_dlq', jsonb_build_object('text', repeat(md5(n::text), 40))
        from generate_series(1, 200) n""")
    lab.one.execute("set enable_seqscan to off")  # as where tables are large
    until(lambda: all_visible(lab, "tasks_dlq"), "nobody who begins a session right now keeps the vacuum from it")

    work = work_of(lab.one, lambda: lab.one.connection.execute(query("dead_letters", "stats")).fetchall())

    assert work.pages_of.get("tasks_dlq", 0) < 10, work.pages_of


def all_visible(lab: Lab, table: str) -> bool:
    lab.one.execute(f"vacuum analyze tasker.{table}")
    return bool(lab.one.value(f"select relallvisible = relpages from pg_class where oid = 'tasker.{table}'::regclass"))


def test_who_sleeps_is_found_without_reading_those_that_have_stopped(lone_lab: Lab) -> None:
    """Each command that runs a task leaves one for a day, and every submission asks."""
    lab = lone_lab

    def wake() -> Work:
        return work_of(lab.one, lambda: lab.one.value("select tasker.wake_v1(array['here'])"))

    def come_and_go(times: int) -> None:
        for _ in range(times):
            visitor = {"worker": str(uuid4()), "lease_ms": 1000, "host": "x", "pid": 1, "concurrency": 1}
            lab.one.core("worker", {**visitor, "action": "start", "namespaces": ["here"]})
            lab.one.core("worker", {**visitor, "action": "stop"})
        lab.one.execute("vacuum tasker.workers")

    come_and_go(SMALL)
    few = wake()
    come_and_go(3 * SMALL)
    many = wake()

    assert many.pages <= few.pages + 1, (few.pages_of, many.pages_of)
    assert many.rows <= few.rows + 5, many.heaviest

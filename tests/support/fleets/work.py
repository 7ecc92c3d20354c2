"""How much a call makes the server do, without a clock: the pages that it visits, by the server's own counters, and
what the nodes of its plans read, join and throw away, nested statements included (where the server has auto_explain).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.support.engine_fixture import Session
from tests.support.waiting import until

PlanNode = dict[str, Any]
FACTOR = 4
"""How much larger the second of two cases is."""
SLACK = 1.5
"""What may be added to that: pages are not full, trees grow a level, a plan changes with the size."""
PAGES = """select c.relname, pg_stat_get_xact_blocks_fetched(c.oid) from pg_class c
  where c.relnamespace = 'tasker'::regnamespace"""
SETTINGS = {
    "client_min_messages": "log",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
}


@dataclass
class Work:
    """What was done. `plans` are the statements with their plans; empty where the server does not tell them."""

    pages_of: dict[str, int] = field(default_factory=dict)
    plans: list[tuple[str, PlanNode]] = field(default_factory=list)

    @property
    def pages(self) -> int:
        """How often a page of a table or an index was looked at."""
        return sum(self.pages_of.values())

    @property
    def rows(self) -> int:
        """What every node of every plan read, joined or threw away."""
        return sum(_rows(plan) for _, plan in self.plans)

    @property
    def heaviest(self) -> str:
        """The pages, and the statement that most of the rows belong to with its plan."""
        return self.told(1)

    def told(self, most: int = 12) -> str:
        """The pages by table and index, and the statements with their plans, those with most rows first."""
        plans = sorted(self.plans, key=lambda item: -_rows(item[1]))[:most]
        texts = (f"{_rows(plan):,} rows: {text}\n" + "\n".join(_lines(plan)) for text, plan in plans)
        return "\n\n".join([f"{self.pages:,} pages: {self.pages_of}", *texts]) + "\n"


def work_of(session: Session, call: Callable[[], Any]) -> Work:
    """The work of one call of the session, which commits what it does."""
    work = Work()

    def learn(notice: psycopg.errors.Diagnostic) -> None:
        _, told, document = (notice.message_primary or "").partition("plan:\n")
        if told:
            parsed = json.loads(document)
            work.plans.append((parsed.get("Query Text", ""), parsed["Plan"]))

    explains = _explains(session)
    with session.connection.transaction():
        before = _pages(session)
        session.connection.add_notice_handler(learn)
        for name, value in SETTINGS.items() if explains else ():
            session.execute(f"set local {name} to {value}")
        call()
        if explains:
            session.execute("set local auto_explain.log_min_duration to -1")
        session.connection.remove_notice_handler(learn)
        work.pages_of = {name: count - before[name] for name, count in _pages(session).items() if count > before[name]}
    return work


def undisturbed(observer: Session, tries: int = 5) -> Iterator[int]:
    """Moments in which nobody makes the server keep old versions of rows, as a snapshot in this database does, an
    autovacuum worker's too, and a transaction that writes in any database: updates find less room on their pages then.
    One may begin in the middle, so there is more than one try.
    """
    others = """select from pg_stat_activity where pid <> pg_backend_pid()
      and (backend_xid is not null or backend_xmin is not null and datname = current_database())"""
    for times in range(tries):
        until(lambda: not observer.rows(others), "nobody needs old versions")
        yield times


def is_linear(small: Work, large: Work) -> bool:
    """True when the second case, `FACTOR` times as large, took about as many times the work."""
    most = FACTOR * SLACK
    return large.pages <= small.pages * most and large.rows <= small.rows * most


def assert_linear(small: Work, large: Work) -> None:
    """`is_linear`, and what there was more of."""
    most = FACTOR * SLACK
    assert large.pages <= small.pages * most, (small.pages_of, large.pages_of)
    assert large.rows <= small.rows * most, f"{small.rows:,} rows became {large.rows:,}; {large.heaviest}"


def _pages(session: Session) -> dict[str, int]:
    return {name: int(count or 0) for name, count in session.rows(PAGES)}


def _explains(session: Session) -> bool:
    try:
        session.execute("load 'auto_explain'")
    except psycopg.Error:
        return False
    return True


def _rows(plan: PlanNode) -> int:
    lost = ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
    own = plan.get("Actual Loops", 0) * (plan.get("Actual Rows", 0) + sum(plan.get(name, 0) for name in lost))
    return int(own) + sum(_rows(child) for child in plan.get("Plans", ()))


def _lines(plan: PlanNode, depth: int = 0) -> list[str]:
    name = " ".join(str(plan[key]) for key in ("Node Type", "Relation Name", "Index Name", "CTE Name") if key in plan)
    own = f"{'  ' * depth}{name}: {plan.get('Actual Rows')} rows x {plan.get('Actual Loops')}"
    return [own, *(line for child in plan.get("Plans", ()) for line in _lines(child, depth + 1))]

"""What is read of the database after every action, and how it is compared with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasker.engine.exchange import ClaimRow, Inputs
from tests.support.laboratory import CHECKED_BY_ONE_PLAN
from tests.support.model.model import Model
from tests.support.model.parts import RUNS, Key, Step

TABLES = (
    "tasks task_details workflow_steps dynamic_edges step_inputs step_results step_failures step_checkpoints "
    "task_moves step_moves refused_results ready_backlog timers enqueue_counters "
    "workers repairs unserved_steps pauses domain_events event_positions unplaced_events parked_events"
)
DELETED = " ".join(f"delete from tasker.{table};" for table in TABLES.split())
EMPTY = (
    f"do $$ begin {DELETED} truncate tasker.ready_backlog; update tasker.task_namespaces set ordered = false; end $$"
)
"""Deleting is much quicker than `truncate` for a few rows. But of steps that wait equally long the first in the heap is
released, and that heap begins anew, so that the same story goes the same way twice."""
STILL = f"""do $$ begin
  alter table tasker.ready_backlog set (autovacuum_enabled = false);
  {CHECKED_BY_ONE_PLAN};
end $$"""

SNAPSHOT = """select jsonb_build_object(
  'violations', (select jsonb_agg(v) from tasker.violations_v1('{}') v),
  'tasks', (select jsonb_object_agg(t.task_uuid, jsonb_build_array(
      case when t.complete then t.state else 'open' end, t.completed_at is not null,
      (select (extract(epoch from m.due_at - '2026-01-01Z'::timestamptz) * 1000)::bigint from tasker.timers m
        where m.subject = t.task_uuid))) from tasker.tasks t),
  'steps', (select jsonb_agg(jsonb_build_object('id', s.workflow_step_uuid, 'task', s.task_uuid, 'name', s.name,
      'state', s.state, 'token', s.claim_token, 'attempts', s.attempts, 'unmet', s.unmet, 'ordinal', s.ordinal,
      'worker', case s.state when 'in_progress' then s.worker_uuid end,
      'due', (extract(epoch from s.due_at - '2026-01-01Z'::timestamptz) * 1000)::bigint,
      'deadline', (extract(epoch from s.deadline_at - '2026-01-01Z'::timestamptz) * 1000)::bigint,
      'timer', (select m.kind from tasker.timers m where m.subject = s.workflow_step_uuid),
      'held', b.workflow_step_uuid is not null, 'paused', coalesce(b.paused, false), 'result', r.result,
      'cursor', c.checkpoint->'cursor',
      'parents', (select jsonb_agg(p.name order by p.name) from tasker.workflow_step_edges e
        join tasker.workflow_steps p on p.workflow_step_uuid = e.from_step_uuid
        where e.task_uuid = s.task_uuid and e.to_step_uuid = s.workflow_step_uuid),
      'batch', i.inputs->'cursor'->>'batch_id',
      'failures', (select count(*) from tasker.step_failures f where f.task_uuid = s.task_uuid
        and f.workflow_step_uuid = s.workflow_step_uuid),
      'claims', h.claims, 'accepted', h.accepted))
    from tasker.workflow_steps s
    left join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.step_results r on r.task_uuid = s.task_uuid and r.ordinal = s.ordinal
      and r.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.step_checkpoints c on c.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.step_inputs i on i.workflow_step_uuid = s.workflow_step_uuid
    cross join lateral (select count(*) filter (where l.path like '%>in_progress') as claims,
        count(*) filter (where l.path like '%>complete') as accepted
      from tasker.step_transition_log l
      where l.task_uuid = s.task_uuid and l.workflow_step_uuid = s.workflow_step_uuid) h))
"""


def compare(model: Model, snapshot: Mapping[str, Any]) -> None:
    """Raises when an invariant is broken or a row is not what the model says."""
    assert not snapshot["violations"], snapshot["violations"]
    tasks = {task.id: [task.state, task.state != "open", task.expires] for task in model.tasks.values()}
    assert (snapshot["tasks"] or {}) == tasks
    rows = {(row["task"], row["name"]): _row(row) for row in snapshot["steps"] or ()}
    expected = {step.key: _expected(step) for step in model.steps()}
    assert sorted(rows) == sorted(expected), "other steps exist than the model says"
    different = {key: (row, expected[key]) for key, row in rows.items() if row != expected[key]}
    assert not different, "\n".join(_difference(key, *pair) for key, pair in different.items())


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("id", "task", "name")}


def _expected(step: Step) -> dict[str, Any]:
    number = step.name.removeprefix(f"{step.plan.name}_")
    return {
        "state": step.state, "token": step.token, "attempts": step.attempts, "unmet": step.unmet,
        "ordinal": step.plan.ordinal, "worker": step.worker if step.state == RUNS else None, "due": step.due,
        "deadline": step.deadline, "held": step.held,
        "timer": "b" if step.timed else "r" if step.state == "waiting_for_retry" else None,
        "paused": step.paused,
        "result": step.result, "cursor": step.checkpoint,
        "parents": sorted(step.parents) or None, "batch": number if number != step.name else None,
        "failures": step.failures, "claims": step.claims, "accepted": step.accepted,
    }  # fmt: skip


def _difference(key: Key, row: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    fields = [f"{name} is {row[name]!r}, not {expected[name]!r}" for name in row if row[name] != expected[name]]
    return f"{key[1]} of {key[0]} ({row['state']}): {'; '.join(fields)}"


def check_inputs(model: Model, names: Mapping[str, Key], claims: Sequence[ClaimRow], inputs: Inputs) -> None:
    """Handlers get the results of every ancestor that has one, by name, and the context of their task."""
    wanted: dict[str, dict[str, Any]] = {}
    for row in claims:
        step = model.step(names[row.step])
        results = wanted.setdefault(step.task.id, {})
        for other in step.task.steps.values():
            if other.plan.name in step.task.plan.above.of(step.plan.name) and other.result is not None:
                results[other.name] = [other.plan.ordinal, other.result]
    assert {task: each.results for task, each in inputs.items()} == wanted

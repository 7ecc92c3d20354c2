-- Queries of `tasker doctor`. They change nothing. Each query has a name and takes its parameters as %(name)s.

-- name: processes
-- Live processes: label, kind, host, release, provider, namespaces, slots, and the milliseconds by which the clock with
-- which a process made its identifier was ahead of the database's when it registered.
select tasker.worker_label(w.worker_uuid, w.name), w.kind, w.host, w.version, coalesce(w.backend, ''), w.namespaces, w.concurrency,
  case when substr(w.worker_uuid::text, 15, 1) = '7' then (('x' || lpad(left(replace(w.worker_uuid::text, '-', ''), 12), 16, '0'))::bit(64)::bigint
    - round(extract(epoch from w.started_at) * 1000))::bigint else 0 end
from tasker.workers w where w.stopped_at is null and w.lease_until > tasker.now() order by w.started_at, w.worker_uuid

-- name: now
select tasker.now()

-- name: finished
-- A sample of the tasks that have ended: the newest, and as many from random moments.
with bounds as (
  select (select t.task_uuid from tasker.tasks t order by t.task_uuid limit 1) as first,
    (select t.task_uuid from tasker.tasks t order by t.task_uuid desc limit 1) as last
)
select distinct n.task::text from (
  (select t.task_uuid as task from tasker.tasks t where t.complete order by t.task_uuid desc limit %(number)s)
  union all
  select t.task_uuid from bounds b cross join generate_series(1, %(number)s) as g (n)
  cross join lateral (select a.created_at + random() * (z.created_at - a.created_at) + g.n * interval '0' as moment
    from tasker.tasks a, tasker.tasks z where a.task_uuid = b.first and z.task_uuid = b.last) m
  cross join lateral (select x.task_uuid, x.complete from tasker.tasks x
    where x.task_uuid >= tasker.task_uuid_at(m.moment) order by x.task_uuid limit 1) t
  where t.complete) n

-- name: parked
-- True if a result waits for an orchestrator in these tasks.
select exists (select from tasker.workflow_steps s where s.task_uuid = any (%(tasks)s::uuid[]) and tasker.step_is_parked(s.state))

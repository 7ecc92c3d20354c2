-- Queries of `tasker doctor` and `tasker db check`. They change nothing, and read slices of tasks, so that no
-- statement grows with the database.

-- name: processes
-- Live processes: label, kind, host, release, provider, namespaces, slots, and the milliseconds by which the
-- clock with which a process made its identifier was ahead of the database's when it registered.
select tasker.worker_label(w.worker_uuid, w.name), w.kind, w.host, w.version, coalesce(w.backend, ''),
  w.namespaces, w.concurrency,
  case when substr(w.worker_uuid::text, 15, 1) = '7'
    then (('x' || lpad(left(replace(w.worker_uuid::text, '-', ''), 12), 16, '0'))::bit(64)::bigint
    - round(extract(epoch from w.started_at) * 1000))::bigint else 0 end
from tasker.workers w where w.stopped_at is null and w.lease_until > tasker.now()
order by w.started_at, w.worker_uuid

-- name: limits_of_processes
-- Live processes in whose configuration a limit differs from the numbers in force: label, host, limit, and
-- both numbers.
select tasker.worker_label(w.worker_uuid, w.name), w.host, r.name, l.concurrency, l.rate, r.max_running,
  r.rate as fleet_rate
from tasker.workers w
cross join lateral jsonb_to_recordset(w.limits) as l (name text, concurrency int, rate float8, burst float8)
join tasker.limit_rules r on r.name = l.name
where w.stopped_at is null and w.lease_until > tasker.now() and jsonb_typeof(w.limits) = 'array'
  and (l.concurrency, l.rate, l.burst) is distinct from (r.max_running, r.rate, r.burst)
order by r.name, w.started_at, w.worker_uuid

-- name: untagged
-- Tags that steps require and no live worker of their namespace has: namespace, tags, number of steps, of the
-- first 10,000 that workers refused.
select q.name, q.tags, count(*) from (
  select ns.name, tasker.missing_tags(ns.name, s.template_id, s.ordinal) as tags
  from (select x.* from tasker.unserved_steps x limit 10000) u
  join tasker.workflow_steps s using (workflow_step_uuid, claim_token)
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    and cardinality(ts.requires) > 0
  join tasker.task_namespaces ns on ns.namespace_id = s.namespace_id
  where tasker.has_no_live_worker(s)) q
where q.tags is not null group by 1, 2 order by 1, 2

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
  cross join lateral (
    select a.created_at + random() * (z.created_at - a.created_at) + g.n * interval '0' as moment
    from tasker.tasks a, tasker.tasks z where a.task_uuid = b.first and z.task_uuid = b.last) m
  cross join lateral (select x.task_uuid, x.complete from tasker.tasks x
    where x.task_uuid >= tasker.task_uuid_at(m.moment) order by x.task_uuid limit 1) t
  where t.complete) n

-- name: parked
-- True if a result waits for an orchestrator in these tasks.
select exists (select from tasker.workflow_steps s
    where s.task_uuid = any (%(tasks)s::uuid[]) and tasker.step_is_parked(s.state))

-- name: open
-- A slice of the tasks that have not ended, in the order of their identifiers.
select t.task_uuid::text from tasker.tasks t where not t.complete and t.task_uuid > %(after)s::uuid
order by t.task_uuid limit %(limit)s

-- name: ended
-- A slice of the tasks that have ended.
select t.task_uuid::text from tasker.tasks t where t.complete and t.task_uuid > %(after)s::uuid
order by t.task_uuid limit %(limit)s

-- name: violations
-- Violated invariants of these tasks; a sweep repairs the causes of a few of them.
select v.rule, v.subject::text, v.detail
from tasker.violations_v1(jsonb_build_object('tasks', to_jsonb(%(tasks)s::text[]))) v
order by v.rule, v.subject

-- name: fleet_violations
-- Violated invariants that belong to no task.
select v.rule, v.subject::text, v.detail from tasker.fleet_violations() v order by v.rule, v.subject

-- name: enqueued
-- By namespace, the steps of these tasks that have been in its queue for longer than any sweep waits, the
-- oldest first.
select ns.name, array_agg(s.workflow_step_uuid::text order by s.updated_at)
from tasker.workflow_steps s join tasker.task_namespaces ns using (namespace_id)
where s.task_uuid = any (%(tasks)s::uuid[]) and s.state = 'enqueued'
  and s.updated_at < tasker.now() - make_interval(secs => %(seconds)s)
group by ns.name order by ns.name

-- name: unheld
-- Steps of these tasks that run for a worker that is not alive.
select s.workflow_step_uuid::text from tasker.workflow_steps s
where s.task_uuid = any (%(tasks)s::uuid[]) and s.state = 'in_progress' and not exists (
  select from tasker.workers w
  where w.worker_uuid = s.worker_uuid and w.stopped_at is null and w.lease_until > tasker.now())
order by s.workflow_step_uuid

-- name: set_aside
-- Messages that referred to nothing, by reason.
select m.queue_name || ': ' || m.reason, count(*), max(m.moved_at)::text
from tasker.poison_messages m group by m.queue_name, m.reason order by 3 desc

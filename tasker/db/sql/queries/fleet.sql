-- Processes, and numbers of the fleet for metrics.

-- name: counted
-- (name of the metric, label and its value, or nulls, number): open tasks by state, of which at most 100,000
-- are counted, repairs, the steps and schedules that wait for a time, by what they wait for, the tasks with a
-- deadline, and by how much the longest overdue of them is late; the time of steps in the queues, and the age
-- of the last checkpoint of running steps: of the 200 oldest open tasks that do not only wait, and of their
-- first 20,000 steps; no more is read, whatever the size of the database.
with looked as materialized (
  select s.*
  from (select x.task_uuid from tasker.tasks x where not x.complete and not x.waits
    order by x.task_uuid limit 200) t
  cross join lateral (select y.workflow_step_uuid, y.namespace_id, y.state, y.started_at, y.updated_at
    from tasker.workflow_steps y where y.task_uuid = t.task_uuid limit 20000) s
  limit 20000
)
select 'tasker_tasks_active' as name, 'state' as label, t.state as value, count(*) as number
from (select x.state from tasker.tasks x where not x.complete limit 100000) t group by t.state
union all
select 'tasker_timers_waiting', 'kind', case m.kind when 'r' then 'retry' when 's' then 'schedule'
    when 'd' then 'deadline' when 'w' then 'wait' when 'm' then 'reminder'
    when 'e' then 'escalation' else 'begin' end, count(*)
from (select x.kind from tasker.timers x where x.kind in ('r', 'b', 'd', 's', 'w', 'm', 'e') limit 100000) m
group by m.kind
union all
select 'tasker_timers_late_seconds', 'kind', case m.kind when 'r' then 'retry' when 's' then 'schedule'
    when 'd' then 'deadline' when 'w' then 'wait' when 'm' then 'reminder'
    when 'e' then 'escalation' else 'begin' end,
  extract(epoch from tasker.now() - min(m.due_at))::float8
from (select x.kind, x.due_at from tasker.timers x where x.due_at <= tasker.now()
  and x.kind in ('r', 'b', 'd', 's', 'w', 'm', 'e') order by x.due_at limit 1000) m group by m.kind
union all
select 'tasker_steps_suspended', 'kind', tasker.wait_word(w.kind), count(*)
from (select x.kind from tasker.step_waits x where x.ended_at is null limit 100000) w
group by tasker.wait_word(w.kind)
union all
select 'tasker_fan_outs_open', null, null, count(*)
from (select from tasker.fan_outs f where f.state <> 'c' limit 100000) f
union all
select 'tasker_child_tasks', 'state', c.state, sum(c.number)
from (select x.* from tasker.fan_outs x where x.state <> 'c' limit 100000) f
cross join lateral (values ('waiting', f.total - f.started), ('running', f.running),
  ('succeeded', f.succeeded), ('failed', f.failed)) c (state, number)
group by c.state
union all
select 'tasker_incoming_events_unrouted', 'namespace', ns.name, count(*)
from (select x.namespace_id from tasker.incoming_events x where x.routed_at is null limit 100000) e
join tasker.task_namespaces ns using (namespace_id) group by ns.name
union all
select 'tasker_limit_waiting', 'limit', r.name,
  (select count(*) from (select from tasker.limit_waiters w where w.rule_id = r.rule_id limit 100000) w)
from (select x.* from tasker.limit_rules x order by x.rule_id limit 1000) r
union all
select 'tasker_fair_rounds_total', 'namespace', ns.name, f.round
from (select x.namespace_id, x.round from tasker.flow_turns x order by x.namespace_id limit 1000) f
join tasker.task_namespaces ns using (namespace_id)
union all
select 'tasker_limit_permits', 'limit', r.name,
  (select count(*) from (select from tasker.limit_permits p where p.rule_id = r.rule_id limit 100000) p)
from (select x.* from tasker.limit_rules x order by x.rule_id limit 1000) r
union all
select 'tasker_repairs_total', 'kind', r.kind, r.repaired from tasker.repairs r
union all
select 'tasker_compensations_total', 'outcome', c.outcome, sum(c.number)::bigint
from tasker.compensation_counters c group by c.outcome
union all
select 'tasker_queue_age_seconds', 'namespace', ns.name,
  extract(epoch from tasker.now() - min(s.updated_at))::float8
from looked s join tasker.task_namespaces ns using (namespace_id) where s.state = 'enqueued' group by ns.name
union all
select 'tasker_checkpoint_age_seconds', 'namespace', ns.name, 
  extract(epoch from tasker.now() - min(greatest(c.updated_at, s.started_at)))::float8
from looked s join tasker.step_checkpoints c using (workflow_step_uuid)
join tasker.task_namespaces ns using (namespace_id)
where s.state = 'in_progress' and s.started_at is not null and c.checkpoint ? 'cursor' group by ns.name

-- name: dead_letters
-- (what, number, hours): the number of all dead letters ever ('created'), and of those that were pending for
-- at most so many hours, with the sum of their hours.
select c.what, sum(c.number)::bigint as number, sum(c.hours) as hours from tasker.dlq_counters c
group by c.what

-- name: backlog
-- Ready steps that wait outside of their queue, by namespace and by the priority of their tasks: those held
-- because the queue is full, and those that a pause holds. At most 20,000 are counted; of %(namespaces)s
-- alone unless that is null.
select ns.name, t.priority, count(*) filter (where not b.paused), count(*) filter (where b.paused)
from (select x.task_uuid,
  x.paused or x.namespace_id = any ((select tasker.paused_namespaces())::int[]) as paused
  from tasker.ready_backlog x where %(namespaces)s::text[] is null or x.namespace_id = any (array(
    select s.namespace_id from tasker.task_namespaces s where s.name = any (%(namespaces)s::text[])))
limit 20000) b
join tasker.tasks t on t.task_uuid = b.task_uuid
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
group by ns.name, t.priority order by ns.name, t.priority desc

-- name: in_hand
-- The steps that a process runs, the earliest started first; of the newest 20,000 open tasks.
select s.task_uuid::text, s.name, ns.name || '/' || nt.name, s.attempts, s.started_at, s.deadline_at
from (select x.task_uuid, x.named_task_uuid from tasker.tasks x where not x.complete and not x.waits
  order by x.task_uuid desc limit 20000) t
join tasker.workflow_steps s on s.task_uuid = t.task_uuid and s.state = 'in_progress'
  and s.worker_uuid = %(worker)s::uuid
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id
order by s.started_at, s.workflow_step_uuid limit 200

-- name: list
-- Every registered process, live ones first, then by kind and start.
select v.* from (
  select w.worker_uuid::text as worker, w.kind, w.name, w.host, w.pid, w.version,
    case when w.stopped_at is not null then 'stopped' when w.lease_until <= tasker.now() then 'lost'
      when w.draining_at is not null then 'draining' else 'live' end as state,
    w.namespaces, coalesce(c.callables, '{}') as callables, w.tags, w.concurrency, w.in_hand,
    w.started_at, w.beat_at,
    case when w.stopped_at is null
      then round(extract(epoch from w.lease_until - tasker.now()) * 1000)::bigint end as lease_left_ms,
    round(extract(epoch from tasker.now() - w.beat_at) * 1000)::bigint as beat_age_ms
  from tasker.workers w left join tasker.worker_callables c using (worker_uuid)) v
where %(stopped)s or v.state <> 'stopped'
order by array_position(array['live', 'draining', 'lost', 'stopped'], v.state), v.kind desc,
  v.started_at, v.worker

-- name: serving
-- The number of live workers with the handler of each step of a template. A worker that took the step and
-- could not resolve it is not counted: handlers beside a workflow serve only the templates of that folder,
-- although they are registered like any other.
select ts.name, count(w.worker_uuid)
from tasker.template_steps ts
join tasker.templates t on t.template_id = ts.template_id
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
left join (tasker.workers w join tasker.worker_callables c on c.worker_uuid = w.worker_uuid)
  on w.kind = 'worker' and w.stopped_at is null and w.draining_at is null and w.lease_until > tasker.now()
  and ns.name = any (w.namespaces)
  and (ts.handler = any (c.callables) or ts.handler in ('tasker.rules', 'tasker.for_each'))
  and (ts.template_id || ':' || ts.ordinal) <> all (w.unserved)
where ts.template_id = %(template)s group by ts.name

-- The registry of processes. Each query has a name and takes its parameters as %(name)s.

-- name: list
-- Every registered process, live ones first, then by kind and start.
select v.* from (
  select w.worker_uuid::text as worker, w.kind, w.name, w.host, w.pid, w.version,
    case when w.stopped_at is not null then 'stopped' when w.lease_until <= tasker.now() then 'lost'
      when w.draining_at is not null then 'draining' else 'live' end as state,
    w.namespaces, coalesce(c.callables, '{}') as callables, w.concurrency, w.in_hand, w.started_at, w.beat_at,
    case when w.stopped_at is null
      then round(extract(epoch from w.lease_until - tasker.now()) * 1000)::bigint end as lease_left_ms,
    round(extract(epoch from tasker.now() - w.beat_at) * 1000)::bigint as beat_age_ms
  from tasker.workers w left join tasker.worker_callables c using (worker_uuid)) v
where %(stopped)s or v.state <> 'stopped'
order by array_position(array['live', 'draining', 'lost', 'stopped'], v.state), v.kind desc, v.started_at, v.worker

-- name: serving
-- The number of live workers with the handler of each step of a template. A worker that took the step and could not
-- resolve it is not counted: handlers beside a workflow serve only the templates of that folder, although they are
-- registered like any other.
select ts.name, count(w.worker_uuid)
from tasker.template_steps ts
join tasker.templates t on t.template_id = ts.template_id
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
left join (tasker.workers w join tasker.worker_callables c on c.worker_uuid = w.worker_uuid)
  on w.kind = 'worker' and w.stopped_at is null and w.draining_at is null and w.lease_until > tasker.now()
  and ns.name = any (w.namespaces) and ts.handler = any (c.callables)
  and (ts.template_id || ':' || ts.ordinal) <> all (w.unserved)
where ts.template_id = %(template)s group by ts.name

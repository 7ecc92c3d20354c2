-- The registry of processes. Each query is named and takes its parameters as %(name)s.

-- name: list
-- Every process that is or was at work, those that live first, then by kind and start.
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

-- What the workers of each namespace have to do, and how fast they do it. Reads counters, the registry, and
-- of each template with ended tasks the newest that ended within a span of time, by an index: of at most
-- 2,000 how many steps they had, of 20 how long those ran.
-- p_args: {window_seconds, namespaces (all): of these alone}
-- Answer: {namespaces: [{namespace, depth: ready steps that nobody holds up, workers, slots, in_hand: of live
--   workers that serve it, drain_per_second, step_seconds: null where nothing ended, steady_seconds: since a
--   worker of it started or stopped}]}, by name
create or replace function tasker.scaling_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with recursive moment as materialized (
    select tasker.now() as at, tasker.required(p_args, 'window_seconds')::numeric as seconds
  ), meant as materialized (
    select ns.namespace_id, ns.name from tasker.task_namespaces ns
    where p_args->'namespaces' is null or p_args->'namespaces' ? ns.name
  ), process as materialized (
    select w.namespaces, w.concurrency, w.in_hand,
      greatest(w.started_at, w.draining_at, w.stopped_at) as changed_at,
      w.stopped_at is null and w.draining_at is null and w.lease_until > tasker.now() as live
    from tasker.workers w where w.kind = 'worker'
  ), served as materialized (
    select u.name, count(*) filter (where x.live) as workers,
      coalesce(sum(x.concurrency) filter (where x.live), 0) as slots,
      coalesce(sum(x.in_hand) filter (where x.live), 0) as in_hand, max(x.changed_at) as changed_at
    from process x cross join lateral (select distinct s from unnest(x.namespaces) s) u (name) group by u.name
  ), waiting as (
    select x.namespace_id, sum(x.steps) as steps from (
      select c.namespace_id, sum(c.enqueued) as steps from tasker.enqueue_counters c group by c.namespace_id
      union all
      select b.namespace_id, count(*)
      from (select r.namespace_id from tasker.ready_backlog r where not r.paused
        and r.namespace_id <> all ((select tasker.paused_namespaces())::int[]) limit 100000) b
      group by b.namespace_id) x
    group by x.namespace_id
  -- of all templates with ended tasks, by whether these failed, the newest end: an index probe for each
  ), newest as (
    (select t.named_task_uuid, t.troubled, t.completed_at from tasker.tasks t
      where t.complete and p_args->'namespaces' is null
      order by t.named_task_uuid desc, t.troubled desc, t.completed_at desc limit 1)
    union all
    select k.* from newest x cross join lateral (
      select t.named_task_uuid, t.troubled, t.completed_at from tasker.tasks t
      where t.complete and (t.named_task_uuid, t.troubled) < (x.named_task_uuid, x.troubled)
      order by t.named_task_uuid desc, t.troubled desc, t.completed_at desc limit 1) k
  ), template as materialized (
    select nt.namespace_id, nt.named_task_uuid, x.troubled from moment n cross join newest x
    cross join lateral (select y.* from tasker.named_tasks y
      where y.named_task_uuid = x.named_task_uuid limit 1) nt
    where (x.completed_at > n.at - tasker.ms(n.seconds * 1000)) is not false   -- null: not known
    union all
    -- one scan of all templates is less than a look for each namespace
    select nt.namespace_id, nt.named_task_uuid, b.badly from (
      select x.* from tasker.named_tasks x where p_args->'namespaces' is not null
        and x.namespace_id = any ((select array_agg(m.namespace_id) from meant m)::int[])
      offset 0) nt cross join (values (false), (true)) as b (badly)
  ), ended as materialized (
    select x.namespace_id, k.task_uuid, k.total, k.completed_at, row_number() over (
      partition by x.named_task_uuid, x.troubled order by k.completed_at desc) as position
    from moment n cross join template x
    cross join lateral (
      select t.task_uuid, t.total, t.completed_at from tasker.tasks t
      where t.named_task_uuid = x.named_task_uuid and t.troubled = x.troubled and t.complete
        and t.completed_at > n.at - tasker.ms(n.seconds * 1000)
      order by t.completed_at desc limit 2000) k
  ), drained as (   -- if there were more tasks than the limit, the time since the first one that was read
    select e.namespace_id, sum(e.total) / case when max(e.position) < 2000 then n.seconds
      else greatest(1, extract(epoch from n.at - min(e.completed_at))) end as per_second
    from ended e cross join moment n group by e.namespace_id, n.seconds, n.at
  ), ran as (
    select e.namespace_id, avg(m.execution_time_ms) / 1000.0 as seconds
    from ended e join tasker.workflow_steps s on s.task_uuid = e.task_uuid
    join tasker.step_moves m on m.workflow_step_uuid = s.workflow_step_uuid
      and m.execution_time_ms is not null
    where e.position <= 20 group by e.namespace_id
  )
  select jsonb_build_object(
    'namespaces', coalesce(jsonb_agg(jsonb_build_object('namespace', ns.name, 'depth', coalesce(w.steps, 0),
    'workers', coalesce(p.workers, 0), 'slots', coalesce(p.slots, 0), 'in_hand', coalesce(p.in_hand, 0),
    'drain_per_second', round(d.per_second, 4),
    'step_seconds', round(r.seconds, 4), 'steady_seconds', round(extract(epoch from n.at - p.changed_at), 3))
  order by ns.name), '[]'))
  from moment n cross join meant ns
  left join waiting w using (namespace_id) left join drained d using (namespace_id)
  left join ran r using (namespace_id)
  left join served p on p.name = ns.name
$$;

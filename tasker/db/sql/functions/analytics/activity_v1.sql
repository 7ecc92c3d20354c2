-- What has happened lately, for charts: by namespace the tasks that were submitted and ended in each slice of
-- a span of time, how its open tasks stand, how long its steps waited in the queue. Reads the newest tasks of
-- the span and what is open, both bounded: whatever is older costs nothing.
-- p_args: {seconds, slices, tasks: at most so many of the span, and of the open ones; steps: so many
--   of them, of tasks all over the span, are asked how long they waited, namespaces (all), offset (0): so
--   many namespaces, those in which something happens first, each by name}
-- Answer: {at, seconds: of the span, less where there are more tasks, slices, namespaces: [{namespace,
--     submitted, ended, failed: tasks in each slice from the oldest on, running, waiting: open tasks,
--     dead_letters}],
--   submitted, ended, failed: tasks of all namespaces in each slice,
--   steps_ended: in the span, wait_p50_ms, wait_p95_ms: from the queue to a worker, null where no step has,
--   waits_p50_ms, waits_p95_ms: the same of each slice, retries_due: steps that run again within the next
--   hour, unserved: [{callable, namespace, steps, since}]: what no worker took}
create or replace function tasker.activity_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
  with asked as materialized (
    select tasker.now() as at, tasker.required(p_args, 'seconds')::numeric as seconds,
      tasker.required(p_args, 'slices')::int as slices, tasker.required(p_args, 'tasks')::int as tasks,
      tasker.required(p_args, 'steps')::int as steps,
      (p_args->>'namespaces')::int as namespaces, coalesce((p_args->>'offset')::int, 0) as first
  ), recent as materialized (
    select t.task_uuid, t.namespace_id, t.complete, t.troubled, t.state, t.created_at, t.completed_at, t.done
    from tasker.tasks t
    where t.task_uuid >= (select tasker.task_uuid_at(a.at - tasker.ms(a.seconds * 1000)) from asked a)
    order by t.task_uuid desc limit (select a.tasks from asked a)
  ), span as materialized (
    select a.at, a.slices, a.steps, r.tasks,
      case when r.tasks < a.tasks then a.seconds
        else greatest(1, extract(epoch from a.at - r.oldest)) end as seconds
    from asked a cross join (select count(*) as tasks, min(x.created_at) as oldest from recent x) r
  ), slice as materialized (
    select array_agg(s.at - tasker.ms(s.seconds * 1000 * (s.slices - n) / s.slices) order by n) as begins
    from span s cross join lateral generate_series(0, s.slices - 1) n
  ), moment as materialized (
    select r.namespace_id, greatest(0, width_bucket(e.moment, s.begins) - 1) as slice,
      count(*) filter (where e.kind = 'submitted') as submitted,
      count(*) filter (where e.kind = 'ended') as ended,
      count(*) filter (where e.kind = 'ended' and r.state = 'error') as failed
    from recent r cross join slice s
    cross join lateral (values ('submitted', r.created_at), ('ended', r.completed_at)) e (kind, moment)
    where e.moment is not null group by 1, 2
  ), total as (
    select jsonb_agg(coalesce(m.submitted, 0) order by g.slice) as submitted,
      jsonb_agg(coalesce(m.ended, 0) order by g.slice) as ended,
      jsonb_agg(coalesce(m.failed, 0) order by g.slice) as failed
    from span s cross join lateral generate_series(0, s.slices - 1) g (slice)
    left join (select x.slice, sum(x.submitted) as submitted, sum(x.ended) as ended, sum(x.failed) as failed
      from moment x group by x.slice) m on m.slice = g.slice
  ), open as materialized (
    select t.namespace_id, count(*) filter (where t.active > t.suspended) as running,
      count(*) filter (where t.active = t.suspended) as waiting
    from (select x.namespace_id, x.active, x.suspended from tasker.tasks x where not x.complete
      order by x.task_uuid desc
      limit (select a.tasks from asked a)) t group by t.namespace_id
  ), letters as materialized (
    select d.namespace, count(*) as dead_letters
    from (select x.namespace from tasker.tasks_dlq x
      where x.resolution_status = 'pending' limit (select a.tasks from asked a)) d
    group by d.namespace
  ), busy as materialized (
    select r.namespace_id from recent r union select o.namespace_id from open o
    union select n.namespace_id from letters l join tasker.task_namespaces n on n.name = l.namespace
  ), shown as materialized (
    select n.namespace_id, n.name, b.namespace_id is null as quiet
    from tasker.task_namespaces n left join busy b on b.namespace_id = n.namespace_id
    order by quiet, n.name limit (select a.namespaces from asked a) offset (select a.first from asked a)
  ), series as (
    select n.namespace_id, jsonb_agg(coalesce(m.submitted, 0) order by g.slice) as submitted,
      jsonb_agg(coalesce(m.ended, 0) order by g.slice) as ended,
      jsonb_agg(coalesce(m.failed, 0) order by g.slice) as failed
    from shown n cross join span s cross join lateral generate_series(0, s.slices - 1) g (slice)
    left join moment m on m.namespace_id = n.namespace_id and m.slice = g.slice group by n.namespace_id
  ), sample as materialized (
    select s.workflow_step_uuid
    from (select x.task_uuid, row_number() over () as place from recent x) r cross join span a
    cross join lateral (   -- limit: one index probe for each task, never a scan of the table
      select x.workflow_step_uuid from tasker.workflow_steps x
      where x.task_uuid = r.task_uuid and x.attempts > 0
      limit greatest(4, a.steps / a.tasks)) s
    where r.place % ceil(a.tasks / (a.steps / 4.0))::int = 0
  ), waited as (
    select m.path, m.created_at, case when m.path like 'EI%' then extract(epoch from m.created_at
      -- 0: a hand-off
      - lag(m.created_at) over (partition by m.workflow_step_uuid order by m.sort_key)) * 1000
      else 0 end as ms
    from sample n cross join lateral (
      select x.* from tasker.step_moves x where x.workflow_step_uuid = n.workflow_step_uuid limit 1000) m
  ), wait as (
    select round(percentile_cont(0.5) within group (order by w.ms)::numeric) as p50,
      round(percentile_cont(0.95) within group (order by w.ms)::numeric) as p95
    from waited w where w.ms is not null and w.path like '%EI%'
  ), waits as (
    select coalesce(jsonb_agg(round(q.p50) order by g.slice), '[]') as p50,
      coalesce(jsonb_agg(round(q.p95) order by g.slice), '[]') as p95
    from span s cross join lateral generate_series(0, s.slices - 1) g (slice) left join (
      select greatest(0, width_bucket(w.created_at, l.begins) - 1) as slice,
        (percentile_cont(0.5) within group (order by w.ms))::numeric as p50,
        (percentile_cont(0.95) within group (order by w.ms))::numeric as p95
      from waited w cross join slice l where w.ms is not null and w.path like '%EI%' group by 1) q
      on q.slice = g.slice
  ), refused as (
    select u.callable, ns.name as namespace, count(*) as steps, min(u.since) as since
    from (select x.* from tasker.unserved_steps x limit 10000) u
    cross join lateral (
      select x.namespace_id from tasker.workflow_steps x where x.workflow_step_uuid = u.workflow_step_uuid
      and x.claim_token = u.claim_token and tasker.step_is_to_run(x.state) limit 1) s
    join tasker.task_namespaces ns using (namespace_id) group by u.callable, ns.name
  )
  select jsonb_build_object('at', s.at, 'seconds', round(s.seconds), 'slices', s.slices,
    'namespaces', (select coalesce(jsonb_agg(jsonb_build_object('namespace', n.name, 'submitted', e.submitted,
        'ended', e.ended, 'failed', e.failed, 'running', coalesce(o.running, 0),
        'waiting', coalesce(o.waiting, 0),
        'dead_letters', coalesce(l.dead_letters, 0)) order by n.quiet, n.name), '[]')
      from shown n join series e using (namespace_id) left join open o using (namespace_id)
      left join letters l on l.namespace = n.name),
    'submitted', t.submitted, 'ended', t.ended, 'failed', t.failed,
    'steps_ended', (select coalesce(sum(r.done), 0) from recent r), 'wait_p50_ms', w.p50,
    'wait_p95_ms', w.p95, 'waits_p50_ms', v.p50, 'waits_p95_ms', v.p95,
    'retries_due', (select count(*) from (select from tasker.timers x
      where x.due_at > s.at and x.due_at < s.at + interval '1 hour' and x.kind = 'r'
      order by x.due_at limit 10000) x),
    'unserved', (select coalesce(jsonb_agg(jsonb_build_object('callable', u.callable,
      'namespace', u.namespace, 'steps', u.steps, 'since', u.since) order by u.since), '[]') from refused u))
  from span s cross join wait w cross join waits v cross join total t
$$;

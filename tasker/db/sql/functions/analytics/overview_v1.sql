-- How a fleet does, at one moment: queues, processes, breakers, templates. Reads only. What it reads is
-- bounded: counters and the registry whole, of held and due steps 100,000 and 10,000, of the tasks the newest
-- ones within a span of time. A breaker is known by the steps that it puts off: it stands in the memory of
-- its worker.
-- p_args: {window_seconds, tasks: so much of the past, so many tasks, queues (all), offset (0): so many
--   queues, those with most in them first, namespaces: the queues of these alone, templates (all): so many}
-- Answer: {at, queues: [{namespace, enqueued, held, paused, taken: steps that ever left the queue,
--   processes}], processes: [{worker, name, kind, host, pid, state, namespaces, slots, in_hand, asleep,
--   beat_age_ms}], breakers: [{breaker, steps, until}], pauses: how many, open: tasks that have not ended,
--   namespaces: how many there are, unworked: of them those with steps in the queue or held and no live
--   worker, unworked_queues: the five fullest of these, as in queues, dead_letters: those that wait for
--   somebody (of both at most 100,000 are counted), submitted, failed_attempts: in the last minute, running:
--   [{task, step, template, percent, done, total, message, reported_at, eta_seconds}]: of the steps whose
--   handlers
--     have reported progress within the last five minutes the 20 that report for longest,
--   templates: [{namespace, template, tasks, running, failed, mean_ms, p95_ms}], the slowest first}
create or replace function tasker.overview_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
  with moment as materialized (
    select tasker.now() as at, tasker.required(p_args, 'window_seconds')::numeric as seconds,
      tasker.required(p_args, 'tasks')::int as tasks
  ), process as materialized (
    select w.*, case when w.lease_until <= tasker.now() then 'lost'
        when w.draining_at is not null then 'draining' else 'live' end as state
    from tasker.workers w where w.stopped_at is null
  ), counter as materialized (
    select c.namespace_id, sum(c.enqueued) as enqueued, sum(c.taken) as taken from tasker.enqueue_counters c
    group by c.namespace_id
  ), held as materialized (
    select b.namespace_id, count(*) filter (where not b.paused) as held,
      count(*) filter (where b.paused) as paused
    from (select x.namespace_id,
      x.paused or x.namespace_id = any ((select tasker.paused_namespaces())::int[]) as paused
      from tasker.ready_backlog x limit 100000) b group by b.namespace_id
  ), serving as materialized (
    select u.name, count(*) as processes from process w
    cross join lateral (select distinct x from unnest(w.namespaces) x) u (name)
    where w.kind = 'worker' and w.state = 'live' group by u.name
  ), queue as materialized (
    select ns.name as namespace, coalesce(c.enqueued, 0) as enqueued, coalesce(c.taken, 0) as taken,
      coalesce(h.held, 0) as held, coalesce(h.paused, 0) as paused, coalesce(s.processes, 0) as processes
    from tasker.task_namespaces ns left join counter c using (namespace_id)
    left join held h using (namespace_id)
    left join serving s on s.name = ns.name
  ), unworked as materialized (
    select q.* from queue q where q.processes = 0 and q.enqueued + q.held > 0
  ), deferred as materialized (
    select m.metadata->>'reason' as reason, s.due_at
    from (select x.subject from tasker.timers x where x.due_at > tasker.now() and x.kind = 'r'
      order by x.due_at limit 10000) r
    join tasker.workflow_steps s on s.workflow_step_uuid = r.subject
    join lateral (   -- limit: one index probe for each step, never its whole history
      select x.metadata from tasker.step_moves x where x.workflow_step_uuid = s.workflow_step_uuid
      and x.sort_key = s.sort_key and x.path = tasker.step_path('in_progress', 'defer') limit 1) m
      on m.metadata ? 'reason' and not m.metadata ? 'again'
  ), recent as materialized (
    -- a subquery: the bound is known first, so the index is read from there on
    select t.* from tasker.tasks t
    where t.task_uuid >= (select tasker.task_uuid_at(n.at - tasker.ms(n.seconds * 1000)) from moment n)
    order by t.task_uuid desc limit (select moment.tasks from moment)
  ), pace as (
    select r.named_task_uuid, count(*) as tasks, count(*) filter (where not r.complete) as running,
      count(*) filter (where r.troubled) as failed,
      round(avg(extract(epoch from r.completed_at - r.created_at) * 1000)
        filter (where r.complete)) as mean_ms,
      round((
        percentile_cont(0.95) within group (order by extract(epoch from r.completed_at - r.created_at) * 1000)
        filter (where r.complete))::numeric) as p95_ms
    from recent r group by r.named_task_uuid
  ), slowest as materialized (
    select p.* from pace p order by p.p95_ms desc nulls last,
      p.named_task_uuid limit (p_args->>'templates')::int
  )
  select jsonb_build_object('at', n.at,
    'queues', (
      select coalesce(jsonb_agg(to_jsonb(q) order by q.enqueued + q.held desc, q.namespace), '[]') from (
        select x.* from queue x where p_args->'namespaces' is null or p_args->'namespaces' ? x.namespace
        order by x.enqueued + x.held desc, x.namespace
        limit (p_args->>'queues')::int offset coalesce((p_args->>'offset')::int, 0)) q),
    'namespaces', (select count(*) from queue), 'unworked', (select count(*) from unworked),
    'unworked_queues', (
      select coalesce(jsonb_agg(to_jsonb(q) order by q.enqueued + q.held desc, q.namespace), '[]')
      from (select x.* from unworked x order by x.enqueued + x.held desc, x.namespace limit 5) q),
    'processes', (select coalesce(jsonb_agg(jsonb_build_object('worker', p.worker_uuid,
        'name', tasker.worker_label(p.worker_uuid, p.name),
        'kind', p.kind, 'host', p.host, 'pid', p.pid, 'state', p.state, 'namespaces', to_jsonb(p.namespaces),
        'slots', p.concurrency,
        'in_hand', p.in_hand, 'asleep', p.asleep,
        'beat_age_ms', round(extract(epoch from n.at - p.beat_at) * 1000))
        order by array_position(array['live', 'draining', 'lost'], p.state), p.kind desc, p.started_at,
          p.worker_uuid), '[]')
      from process p),
    'breakers', (
      select coalesce(jsonb_agg(jsonb_build_object('breaker', d.breaker, 'steps', d.steps, 'until', d.until)
        order by d.steps desc, d.breaker), '[]')
      from (select regexp_replace(x.reason, '^the circuit breaker of (.*) is open$', '\1') as breaker,
        count(*) as steps, max(x.due_at) as until from deferred x group by 1) d),
    'running', (select coalesce(jsonb_agg(r.report
        || jsonb_build_object('task', r.task_uuid, 'step', r.name, 'template', r.template)
        order by r.first_at, r.workflow_step_uuid), '[]')
      from (select tasker.reported(p, s) as report, s.task_uuid, s.name, s.workflow_step_uuid, p.first_at,
          nt.name || ':' || nt.version as template
        from tasker.step_progress p
        join tasker.workflow_steps s on s.workflow_step_uuid = p.workflow_step_uuid
        join tasker.tasks t on t.task_uuid = s.task_uuid
        join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
        where p.reported_at > n.at - interval '5 minutes' and tasker.reported(p, s) is not null
        order by p.first_at, p.workflow_step_uuid limit 20) r),
    'pauses', (select count(*) from tasker.pauses),
    'open', (select count(*) from (select from tasker.tasks t where not t.complete limit 100000) o),
    'dead_letters', (select count(*)
      from (select from tasker.tasks_dlq d where d.resolution_status = 'pending' limit 100000) d),
    'submitted', (select count(*) from (select from tasker.tasks t
      where t.task_uuid >= tasker.task_uuid_at(n.at - interval '1 minute') limit 1000000) s),
    'failed_attempts', (select count(*)
      from (select from tasker.step_failures f where f.created_at > n.at - interval '1 minute'
      limit 1000000) f),
    'templates', (select coalesce(jsonb_agg(jsonb_build_object('namespace', ns.name,
        'template', nt.name || ':' || nt.version,
        'tasks', p.tasks, 'running', p.running, 'failed', p.failed, 'mean_ms', p.mean_ms, 'p95_ms', p.p95_ms)
        order by p.p95_ms desc nulls last, ns.name, nt.name, tasker.version_order(nt.version) collate "C",
          nt.version collate "C"), '[]')
      from slowest p join tasker.named_tasks nt on nt.named_task_uuid = p.named_task_uuid
      join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id))
  from moment n
$$;

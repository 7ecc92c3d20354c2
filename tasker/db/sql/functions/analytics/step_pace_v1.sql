-- Recent durations of the steps of one version of a template: of its newest tasks, by an index; older data
-- costs nothing.
-- p_args: {namespace, template, version, tasks: maximum number}
-- Returns: {tasks: number of tasks read, ended, failed: of these, p50_ms, p95_ms: of ended tasks, from
--   submission to end, steps: [{step: name in the template, executions, errors, p50_ms, p95_ms}]}
create or replace function tasker.step_pace_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
  with recent as materialized (
    select t.task_uuid, t.complete, t.troubled, extract(epoch from t.completed_at - t.created_at) * 1000 as ms
    from tasker.tasks t
    where t.named_task_uuid = (select nt.named_task_uuid from tasker.named_tasks nt
      join tasker.task_namespaces ns using (namespace_id)
      where ns.name = p_args->>'namespace' and nt.name = p_args->>'template'
        and nt.version = p_args->>'version')
    order by t.task_uuid desc limit tasker.required(p_args, 'tasks')::int
  ), ran as (
    select ts.name, m.path, m.execution_time_ms from recent r
    cross join lateral (   -- limits: an index probe for each row, never a scan of a table
      select x.workflow_step_uuid, x.template_id, x.ordinal from tasker.workflow_steps x
      where x.task_uuid = r.task_uuid limit 1000) s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    cross join lateral (
      select x.path, x.execution_time_ms from tasker.step_moves x
      where x.workflow_step_uuid = s.workflow_step_uuid and x.execution_time_ms is not null limit 1000) m
  ), step as (
    select r.name, count(*) as executions,
      count(*) filter (where not tasker.path_succeeded(r.path)) as errors,
      round(percentile_cont(0.5) within group (order by r.execution_time_ms)::numeric, 1) as p50,
      round(percentile_cont(0.95) within group (order by r.execution_time_ms)::numeric, 1) as p95
    from ran r group by r.name
  )
  select jsonb_build_object('tasks', count(*), 'ended', count(*) filter (where r.complete),
    'failed', count(*) filter (where r.troubled),
    'p50_ms', round(percentile_cont(0.5) within group (order by r.ms) filter (where r.complete)::numeric, 1),
    'p95_ms', round(percentile_cont(0.95) within group (order by r.ms) filter (where r.complete)::numeric, 1),
    'steps', (select coalesce(jsonb_agg(jsonb_build_object('step', s.name, 'executions', s.executions,
      'errors', s.errors, 'p50_ms', s.p50, 'p95_ms', s.p95) order by s.name), '[]') from step s))
  from recent r
$$;

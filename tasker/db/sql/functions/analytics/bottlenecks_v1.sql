-- The slowest steps and templates of late. Reads the newest tasks submitted within a time span, with their
-- steps and history, by ranges of their identifiers; older data costs nothing.
-- p_args: {hours, tasks: maximum number, limit, min_executions}
-- Returns: {steps, tasks: [{namespace, template, version, (step), executions, errors, mean_seconds,
--   max_seconds, (mean_steps), last_at}] by mean duration, task_states, step_states: {state: count} of these
--   tasks}
create or replace function tasker.bottlenecks_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
  with recent as materialized (
    select t.* from tasker.tasks t
    where t.task_uuid >= (select tasker.task_uuid_at(
        tasker.now() - tasker.ms(tasker.required(p_args, 'hours')::numeric * 3600000)))
    order by t.task_uuid desc limit tasker.required(p_args, 'tasks')::int
  ), step as materialized (
    select s.workflow_step_uuid, s.template_id, s.ordinal, s.state from tasker.workflow_steps s
    where s.workflow_step_uuid >= (select r.task_uuid from recent r order by r.task_uuid limit 1)
  ), ran as (
    select s.template_id, s.ordinal, count(*) as executions,
      count(*) filter (where not tasker.path_succeeded(m.path)) as errors,
      avg(m.execution_time_ms) / 1000.0 as mean, max(m.execution_time_ms) / 1000.0 as max,
      max(m.created_at) as last_at
    from step s join tasker.step_moves m on m.workflow_step_uuid = s.workflow_step_uuid
    where m.workflow_step_uuid >= (select r.task_uuid from recent r order by r.task_uuid limit 1)
      and m.execution_time_ms is not null
    group by s.template_id, s.ordinal having count(*) >= tasker.required(p_args, 'min_executions')::int
    order by mean desc limit tasker.required(p_args, 'limit')::int
  ), ended as (
    select r.named_task_uuid, count(*) as executions, count(*) filter (where r.state = 'error') as errors,
      avg(r.total) as steps, avg(extract(epoch from r.completed_at - r.created_at)) as mean,
      max(extract(epoch from r.completed_at - r.created_at)) as max,
      max(r.completed_at) as last_at
    from recent r where r.complete
    group by r.named_task_uuid having count(*) >= tasker.required(p_args, 'min_executions')::int
    order by mean desc limit tasker.required(p_args, 'limit')::int
  )
  select jsonb_build_object(
    'steps', (select coalesce(jsonb_agg(jsonb_build_object('namespace', ns.name, 'template', nt.name,
        'version', nt.version, 'step', ts.name,
        'executions', r.executions, 'errors', r.errors, 'mean_seconds', round(r.mean, 4),
        'max_seconds', round(r.max, 4), 'last_at', r.last_at)
        order by r.mean desc, ns.name, nt.name, ts.name), '[]')
      from ran r join tasker.template_steps ts on ts.template_id = r.template_id and ts.ordinal = r.ordinal
      join tasker.templates t on t.template_id = r.template_id
      join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
      join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id),
    'tasks', (select coalesce(jsonb_agg(jsonb_build_object('namespace', ns.name, 'template', nt.name,
        'version', nt.version, 'executions', e.executions, 'errors', e.errors,
        'mean_seconds', round(e.mean::numeric, 4), 'max_seconds', round(e.max::numeric, 4),
        'mean_steps', round(e.steps, 1), 'last_at', e.last_at) order by e.mean desc, ns.name, nt.name), '[]')
      from ended e join tasker.named_tasks nt on nt.named_task_uuid = e.named_task_uuid
      join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id),
    'task_states', (select coalesce(jsonb_object_agg(s.state, s.number), '{}')
      from (select r.state, count(*) as number from recent r group by 1) s),
    'step_states', (select coalesce(jsonb_object_agg(s.state, s.number), '{}')
      from (select x.state, count(*) as number from step x group by 1) s))
$$;

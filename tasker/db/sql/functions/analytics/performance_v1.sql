-- Performance of tasks and steps of late. Reads the newest tasks submitted within a time span, and the
-- history of their steps, by ranges of their identifiers; older data costs nothing.
-- p_args: {hours, tasks: maximum number}
-- Returns: {calculated_at, analysis_period_start: later than `hours` ago if there are more tasks, total,
--   active, completed, failed, tasks_per_hour, steps_per_hour, completion_rate, error_rate (0 to 1),
--   task_seconds, step_seconds: averages, health: 0 to 1}
create or replace function tasker.performance_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
  with recent as materialized (
    select t.task_uuid, t.state, t.complete, t.created_at, t.completed_at from tasker.tasks t
    where t.task_uuid >= (select tasker.task_uuid_at(
        tasker.now() - tasker.ms(tasker.required(p_args, 'hours')::numeric * 3600000)))
    order by t.task_uuid desc limit tasker.required(p_args, 'tasks')::int
  ), counted as (
    select count(*) as total, count(*) filter (where not r.complete) as active,
      count(*) filter (where tasker.task_is_done(r.state)) as completed,
      count(*) filter (where r.state = 'error') as failed,
      avg(extract(epoch from r.completed_at - r.created_at)) filter (where r.complete) as seconds,
      case when count(*) < tasker.required(p_args, 'tasks')::int
        then tasker.now() - tasker.ms(tasker.required(p_args, 'hours')::numeric * 3600000)
        else min(r.created_at) end as since
    from recent r
  ), ran as (
    select count(*) as steps, avg(m.execution_time_ms) / 1000.0 as seconds from tasker.step_moves m
    where m.workflow_step_uuid >= (select r.task_uuid from recent r order by r.task_uuid limit 1)
      and m.execution_time_ms is not null
  ), server as (
    select least(1.0, (select coalesce(sum(d.numbackends), 0) from pg_catalog.pg_stat_database d)::numeric
      / greatest(1, current_setting('max_connections')::int)) as busy
  )
  select jsonb_build_object('calculated_at', tasker.now(), 'analysis_period_start', c.since, 'total', c.total,
    'active', c.active, 'completed', c.completed, 'failed', c.failed,
    'tasks_per_hour', round(c.completed / h.hours), 'steps_per_hour', round(r.steps / h.hours),
    'completion_rate', round(coalesce(c.completed::numeric / nullif(c.total, 0), 0), 4),
    'error_rate', round(coalesce(c.failed::numeric / nullif(c.total, 0), 0), 4),
    'task_seconds', round(coalesce(c.seconds, 0)::numeric, 4),
    'step_seconds', round(coalesce(r.seconds, 0)::numeric, 4),
    'health', case when c.total = 0 then 1.0
      else round(0.5 * c.completed / c.total + 0.3 * (1 - c.failed::numeric / c.total)
      + 0.2 * (1 - s.busy), 4) end)
  from counted c cross join ran r cross join server s
  cross join lateral (
    select greatest(extract(epoch from tasker.now() - c.since) / 3600.0, 1.0 / 3600) as hours) h
$$;

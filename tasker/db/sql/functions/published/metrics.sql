-- Performance since a moment, by default one hour ago: tasker.performance_v1 as columns, of a limited number
-- of the newest tasks; `analysis_period_start` says how far back these reach. Throughputs are per hour.
create or replace function tasker.get_analytics_metrics(since_timestamp timestamptz default null)
returns table (active_tasks_count bigint, total_namespaces_count bigint, unique_task_types_count bigint,
  system_health_score numeric, task_throughput bigint, completion_count bigint, error_count bigint,
  completion_rate numeric, error_rate numeric, avg_task_duration numeric, avg_step_duration numeric,
  step_throughput bigint, analysis_period_start timestamptz, calculated_at timestamptz)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select (select count(*) from tasker.tasks t where not t.complete),
    (select count(*) from tasker.task_namespaces),
    (select count(distinct (nt.namespace_id, nt.name)) from tasker.named_tasks nt), (p->>'health')::numeric,
    (p->>'tasks_per_hour')::bigint, (p->>'completed')::bigint, (p->>'failed')::bigint,
    (p->>'completion_rate')::numeric, (p->>'error_rate')::numeric, (p->>'task_seconds')::numeric,
    (p->>'step_seconds')::numeric, (p->>'steps_per_hour')::bigint,
    (p->>'analysis_period_start')::timestamptz, (p->>'calculated_at')::timestamptz
  from tasker.performance_v1(jsonb_build_object('tasks', 20000, 'hours',
    case when $1 is null then 1 else greatest(extract(epoch from tasker.now() - $1), 1) / 3600 end)) p
$$;

-- The steps with the longest attempts on average, of tasks submitted since a moment. A null filter matches
-- everything.
create or replace function tasker.get_slowest_steps(since_timestamp timestamptz default null,
  limit_count int default 10,
  namespace_filter text default null, task_name_filter text default null, version_filter text default null)
returns table (named_step_uuid uuid, step_name text, avg_duration_seconds numeric,
  max_duration_seconds numeric,
  min_duration_seconds numeric, execution_count bigint, error_count bigint, error_rate numeric,
  last_executed_at timestamptz)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select ts.named_step_uuid, ts.name, round(avg(m.execution_time_ms) / 1000, 4),
    round(max(m.execution_time_ms) / 1000.0, 4), round(min(m.execution_time_ms) / 1000.0, 4), count(*),
    count(*) filter (where not tasker.path_succeeded(m.path)),
    round(count(*) filter (where not tasker.path_succeeded(m.path))::numeric / count(*), 4), max(m.created_at)
  from tasker.step_moves m
  join tasker.workflow_steps s on s.workflow_step_uuid = m.workflow_step_uuid
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  join tasker.templates t on t.template_id = s.template_id
  join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
  join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id
  where m.execution_time_ms is not null and m.workflow_step_uuid >= tasker.task_uuid_at(coalesce($1, 'epoch'))
    and ($3 is null or ns.name = $3) and ($4 is null or nt.name = $4) and ($5 is null or nt.version = $5)
  group by ts.named_step_uuid, ts.name order by 3 desc, ts.name limit $2
$$;

-- The templates with the longest tasks on average, of tasks submitted since a moment that have ended.
create or replace function tasker.get_slowest_tasks(since_timestamp timestamptz default null,
  limit_count int default 10,
  namespace_filter text default null, task_name_filter text default null, version_filter text default null)
returns table (named_task_uuid uuid, task_name text, avg_duration_seconds numeric,
  max_duration_seconds numeric, min_duration_seconds numeric, execution_count bigint, avg_step_count numeric,
  error_count bigint, error_rate numeric, last_executed_at timestamptz)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select nt.named_task_uuid, nt.name, round(avg(d.seconds), 4), round(max(d.seconds), 4),
    round(min(d.seconds), 4), count(*), round(avg(t.total), 1), count(*) filter (where t.state = 'error'),
    round(count(*) filter (where t.state = 'error')::numeric / count(*), 4), max(t.completed_at)
  from tasker.tasks t
  cross join lateral (select extract(epoch from t.completed_at - t.created_at) as seconds) d
  join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  where t.complete and t.task_uuid >= tasker.task_uuid_at(coalesce($1, 'epoch'))
    and ($3 is null or ns.name = $3) and ($4 is null or nt.name = $4) and ($5 is null or nt.version = $5)
  group by nt.named_task_uuid, nt.name order by 3 desc, nt.name limit $2
$$;

-- Counts tasks and steps by state, and the connections of the server. Reads all rows, so call it rarely and
-- not beside a busy engine with years of history; tasker.performance_v1 reads recent data only.
create or replace function tasker.get_system_health_counts()
returns table (pending_tasks bigint, initializing_tasks bigint, enqueuing_steps_tasks bigint,
  steps_in_process_tasks bigint, evaluating_results_tasks bigint, waiting_for_dependencies_tasks bigint,
  waiting_for_retry_tasks bigint, blocked_by_failures_tasks bigint, complete_tasks bigint, error_tasks bigint,
  cancelled_tasks bigint, resolved_manually_tasks bigint, total_tasks bigint, pending_steps bigint,
  enqueued_steps
  bigint, in_progress_steps bigint, enqueued_for_orchestration_steps bigint,
  enqueued_as_error_for_orchestration_steps bigint, waiting_for_retry_steps bigint, complete_steps bigint,
  error_steps bigint, cancelled_steps bigint, resolved_manually_steps bigint, total_steps bigint,
  active_connections bigint, max_connections bigint)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select t.*, s.*, (select coalesce(sum(d.numbackends), 0)::bigint from pg_stat_database d),
    current_setting('max_connections')::bigint
  from (
    select count(*) filter (where x.state = 'pending'),
      count(*) filter (where x.state = 'initializing'), count(*)
      filter (where x.state = 'enqueuing_steps'),
      count(*) filter (where x.state = 'steps_in_process'), count(*)
      filter (where x.state = 'evaluating_results'),
      count(*) filter (where x.state = 'waiting_for_dependencies'),
      count(*) filter (where x.state = 'waiting_for_retry'), count(*) filter (where x.state =
      'blocked_by_failures'), count(*) filter (where x.state = 'complete'), count(*) filter (where x.state =
      'error'), count(*) filter (where x.state = 'cancelled'), count(*) filter (where x.state =
      'resolved_manually'), count(*)
    from tasker.tasks x) t
  cross join (
    select count(*) filter (where x.state = 'pending'), count(*) filter (where x.state = 'enqueued'), count(*)
      filter (where x.state = 'in_progress'), count(*) filter (where x.state = 'enqueued_for_orchestration'),
      count(*) filter (where x.state = 'enqueued_as_error_for_orchestration'),
      count(*) filter (where x.state =
      'waiting_for_retry'), count(*) filter (where x.state = 'complete'),
    count(*) filter (where x.state = 'error'),
      count(*) filter (where x.state = 'cancelled'),
      count(*) filter (where x.state = 'resolved_manually'), count(*)
    from tasker.workflow_steps x) s
$$;

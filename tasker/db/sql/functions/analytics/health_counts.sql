-- Counts tasks and steps by state, and the connections of the server. Reads all rows, so call it rarely and not beside
-- a busy engine with years of history; tasker.performance_v1 reads recent data only.
create or replace function tasker.get_system_health_counts()
returns table (pending_tasks bigint, initializing_tasks bigint, enqueuing_steps_tasks bigint,
  steps_in_process_tasks bigint, evaluating_results_tasks bigint, waiting_for_dependencies_tasks bigint,
  waiting_for_retry_tasks bigint, blocked_by_failures_tasks bigint, complete_tasks bigint, error_tasks bigint,
  cancelled_tasks bigint, resolved_manually_tasks bigint, total_tasks bigint, pending_steps bigint, enqueued_steps
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
    select count(*) filter (where x.state = 'pending'), count(*) filter (where x.state = 'initializing'), count(*)
      filter (where x.state = 'enqueuing_steps'), count(*) filter (where x.state = 'steps_in_process'), count(*)
      filter (where x.state = 'evaluating_results'), count(*) filter (where x.state = 'waiting_for_dependencies'),
      count(*) filter (where x.state = 'waiting_for_retry'), count(*) filter (where x.state =
      'blocked_by_failures'), count(*) filter (where x.state = 'complete'), count(*) filter (where x.state =
      'error'), count(*) filter (where x.state = 'cancelled'), count(*) filter (where x.state =
      'resolved_manually'), count(*)
    from tasker.tasks x) t
  cross join (
    select count(*) filter (where x.state = 'pending'), count(*) filter (where x.state = 'enqueued'), count(*)
      filter (where x.state = 'in_progress'), count(*) filter (where x.state = 'enqueued_for_orchestration'),
      count(*) filter (where x.state = 'enqueued_as_error_for_orchestration'), count(*) filter (where x.state =
      'waiting_for_retry'), count(*) filter (where x.state = 'complete'), count(*) filter (where x.state = 'error'),
      count(*) filter (where x.state = 'cancelled'), count(*) filter (where x.state = 'resolved_manually'), count(*)
    from tasker.workflow_steps x) s
$$;

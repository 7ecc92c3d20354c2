-- The state of tasks and the reason for which they wait. Every step in `error` blocks for good, because steps
-- that may be retried are in `waiting_for_retry`. Mirrors tasker.engine.states.task.
create or replace function tasker.get_task_execution_contexts_batch(task_uuids uuid[])
returns table (task_uuid uuid, named_task_uuid uuid, status text, total_steps bigint, pending_steps bigint,
  in_progress_steps bigint, completed_steps bigint, failed_steps bigint, error_steps bigint,
  ready_steps bigint, permanently_blocked_steps bigint, completion_percentage numeric, execution_status text,
  recommended_action text, health_status text, blocked_by_errors boolean)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  with counted as (
    select r.task_uuid, count(*) as total, count(*) filter (where r.current_state = 'pending') as pending,
      count(*) filter (where tasker.step_is_active(r.current_state)) as active,
      count(*) filter (where tasker.step_is_done(r.current_state)) as done,
      count(*) filter (where r.current_state = 'error') as failed,
      count(*) filter (where r.ready_for_execution) as ready,
      bool_or(r.current_state = 'waiting_for_retry') as retries
    from tasker.get_step_readiness_status_batch($1) r group by r.task_uuid
  )
  select t.task_uuid, t.named_task_uuid, t.state, c.total, c.pending, c.active, c.done, c.failed, c.failed,
    c.ready, c.failed, round(100.0 * c.done / c.total, 2), x.status,
    case x.status when 'blocked_by_failures' then 'handle_failures'
      when 'has_ready_steps' then 'execute_ready_steps' when 'processing' then 'wait_for_completion'
      when 'all_complete' then 'finalize_task' else 'wait_for_dependencies' end,
    case when c.failed > 0 then 'blocked' when c.retries then 'recovering' else 'healthy' end, c.failed > 0
  from counted c join tasker.tasks t on t.task_uuid = c.task_uuid
  cross join lateral (select case when c.failed > 0 then 'blocked_by_failures'
    when c.ready > 0 then 'has_ready_steps'
    when c.active > 0 then 'processing' when c.done = c.total then 'all_complete'
    else 'waiting_for_dependencies' end as status) x
$$;

-- The same for one task.
create or replace function tasker.get_task_execution_context(input_task_uuid uuid)
returns table (task_uuid uuid, named_task_uuid uuid, status text, total_steps bigint, pending_steps bigint,
  in_progress_steps bigint, completed_steps bigint, failed_steps bigint, error_steps bigint,
  ready_steps bigint, permanently_blocked_steps bigint, completion_percentage numeric, execution_status text,
  recommended_action text, health_status text, blocked_by_errors boolean)
language sql stable as $$
  select c.* from tasker.get_task_execution_contexts_batch(array[$1]) c
$$;

-- The actions for those of the tasks that are stale. A task is ended if it has a step that can be ended, and none whose
-- result only waits to be processed. A task that would only be recorded and has a pending entry is left out.
create or replace function tasker.staleness_actions(p_tasks uuid[], p_to_error boolean, p_to_dlq boolean)
returns jsonb
language sql stable
as $$
  select coalesce(jsonb_agg(jsonb_build_object('task_uuid', q.task_uuid, 'namespace_name', q.namespace_name, 'task_name', q.task_name,
    'current_state', q.state, 'time_in_state_minutes', floor(q.minutes), 'threshold_minutes', q.threshold_minutes,
    'reason', q.reason, 'signal', q.signal, 'step', q.step, 'moved_to_dlq', q.enters, 'transition_success', q.ends,
    'action_taken', case when q.ends and q.enters then 'TransitionedToDlqAndError' when q.ends then 'TransitionedToErrorOnly'
      else 'MovedToDlqOnly' end) order by q.task_uuid), '[]')
  from (
    select s.*, s.may_end and p_to_error and coalesce((
        select bool_or(tasker.step_path(w.state, 'expire') is not null) and not bool_or(tasker.step_is_parked(w.state))
        from tasker.workflow_steps w where w.task_uuid = s.task_uuid and not tasker.step_is_ended(w.state)
          and (w.state <> 'pending' or w.unmet = 0)), false) as ends,
      s.to_dlq and p_to_dlq and not exists (select from tasker.tasks_dlq e
        where e.task_uuid = s.task_uuid and e.resolution_status = 'pending') as enters
    from tasker.stale_tasks(p_tasks, null, cardinality(p_tasks)) s) q
  where q.ends or q.enters
$$;

-- Creates dead letters for tasks that came to rest because of failed steps, in the transaction that lets them rest.
-- `p_from` are their previous states. For a task with a pending entry only the failures are updated: reason and time
-- stay, because that is when the task first needed attention.
create or replace function tasker.dlq_failed(p_tasks uuid[], p_from text[], p_now timestamptz) returns void
language sql
as $$
  insert into tasker.tasks_dlq as e (task_uuid, original_state, dlq_reason, dlq_timestamp, task_snapshot, fingerprints,
    created_at, updated_at)
  select q.task, q.state, (case when f.unserved then 'worker_unavailable' when f.permanent then 'permanent_failure' else 'max_retries_exceeded' end)::tasker.dlq_reason,
    p_now, tasker.dlq_snapshot(q.task), f.fingerprints, p_now, p_now
  from unnest(p_tasks, p_from) q (task, state) cross join lateral tasker.dlq_fingerprints(q.task) f
  order by q.task
  on conflict (task_uuid) where resolution_status = 'pending' do update set fingerprints = excluded.fingerprints,
    task_snapshot = coalesce(e.task_snapshot, '{}') || jsonb_build_object('current_state', excluded.task_snapshot->'current_state',
      'workflow_steps', excluded.task_snapshot->'workflow_steps'), updated_at = excluded.updated_at
$$;

-- Items for advance_v1 that end stale tasks: every step that has not ended, so that none is left to run, with the
-- reason as its failure; `running` marks the steps that a worker has.
create or replace function tasker.staleness_limits(p_tasks uuid[], p_stale jsonb) returns jsonb
language sql stable
as $$
  select jsonb_agg(jsonb_build_object('s', s.workflow_step_uuid, 't', s.task_uuid, 'kind', 'expire',
    'running', s.state = 'in_progress', 'e', jsonb_build_object('error_type', 'staleness_timeout', 'retryable', false,
      'message', format('nothing moved the task for %s minutes (%s), and %s is the limit',
        x->>'time_in_state_minutes', x->>'signal', x->>'threshold_minutes'),
      'attempt', s.attempts, 'fingerprint', left(md5('staleness_timeout ' || (x->>'signal')), 16))))
  from jsonb_array_elements(p_stale) x
  join tasker.workflow_steps s on s.task_uuid = (x->>'task_uuid')::uuid
  where s.task_uuid = any (p_tasks) and tasker.step_path(s.state, 'expire') is not null
    and (s.state <> 'pending' or s.unmet = 0)
$$;

-- The fingerprints of the final failures of the failed steps of a task, at most 100; and two flags that are true if
-- each of these steps only lacked a worker with the handler (unserved), or failed permanently, so that it did not use
-- up its attempts (permanent).
create or replace function tasker.dlq_fingerprints(p_task uuid, out fingerprints text[], out unserved boolean, out permanent boolean)
language sql stable
as $$
  select coalesce((array_agg(distinct f.fingerprint) filter (where f.fingerprint is not null))[:100], '{}'),
    coalesce(bool_and(f.error_type = 'handler_not_found'), false), coalesce(bool_and(not f.retryable), false)
  from tasker.workflow_steps s
  cross join lateral (select x.error->>'fingerprint' as fingerprint, x.error->>'error_type' as error_type,
      coalesce((x.error->>'retryable')::boolean, true) as retryable
    from tasker.step_failures x where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
    order by x.failure_id desc limit 1) f
  where s.task_uuid = p_task and s.state = 'error'
$$;

-- Creates dead letters for tasks that came to rest because of failed steps, in the transaction that lets them
-- rest. `p_from` are their previous states. For a task with a pending entry only the failures are updated:
-- reason and time stay, because that is when the task first needed attention.
create or replace function tasker.dlq_failed(p_tasks uuid[], p_from text[], p_now timestamptz) returns void
language sql
as $$
  insert into tasker.tasks_dlq as e (task_uuid, original_state, dlq_reason, dlq_timestamp,
    task_snapshot, fingerprints, created_at, updated_at)
  select q.task, q.state, (case when t.outcome = 'compensation_failed' then 'compensation_failed'
        when f.unserved then 'worker_unavailable'
        when f.permanent then 'permanent_failure' else 'max_retries_exceeded' end)::tasker.dlq_reason,
    p_now, tasker.dlq_snapshot(q.task), f.fingerprints, p_now, p_now
  from unnest(p_tasks, p_from) q (task, state) join tasker.tasks t on t.task_uuid = q.task
  cross join lateral tasker.dlq_fingerprints(q.task) f
  -- a compensated task needs nobody, unless one of its last steps failed
  where t.outcome is distinct from 'compensated' or exists (select from tasker.workflow_steps s
    where s.task_uuid = q.task and s.state = 'error' and s.settled is null
      and tasker.is_late(s.template_id, s.ordinal))
  order by q.task
  on conflict (task_uuid)
  where resolution_status = 'pending' do update set fingerprints = excluded.fingerprints,
    task_snapshot = coalesce(e.task_snapshot, '{}')
      || jsonb_build_object('current_state', excluded.task_snapshot->'current_state',
      'workflow_steps', excluded.task_snapshot->'workflow_steps'), updated_at = excluded.updated_at
$$;

-- The fingerprints of the final failures of the failed steps of a task, at most 100; and two flags that are
-- true if each of these steps only lacked a worker with the handler (unserved), or failed permanently, so
-- that it did not use up its attempts (permanent).
create or replace function tasker.dlq_fingerprints(p_task uuid, out fingerprints text[], out unserved boolean,
  out permanent boolean)
language sql stable
as $$
  select coalesce((array_agg(distinct f.fingerprint) filter (where f.fingerprint is not null))[:100], '{}'),
    coalesce(bool_and(f.error_type = 'handler_not_found'), false), coalesce(bool_and(not f.retryable), false)
  from tasker.workflow_steps s
  cross join lateral (select x.error->>'fingerprint' as fingerprint, x.error->>'error_type' as error_type,
      coalesce((x.error->>'retryable')::boolean, true) as retryable
    from tasker.step_failures x
    where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
    order by x.failure_id desc limit 1) f
  where s.task_uuid = p_task and s.state = 'error' and s.settled is null
$$;

-- The snapshot of a task in its dead letter, from the rows as they are now: the state of the task, and its
-- unfinished steps, at most 50, with the last failure of each failed one. Messages are truncated; the history
-- has them in full.
create or replace function tasker.dlq_snapshot(p_task uuid) returns jsonb
language sql stable
as $$
  select jsonb_build_object('task_uuid', t.task_uuid, 'namespace', ns.name, 'namespace_name', ns.name,
    'task_name', nt.name, 'template_name', nt.name, 'version', nt.version, 'current_state', t.state,
    'priority', t.priority, 'detection_time', tasker.now(),
    'template_configuration', coalesce(m.lifecycle, '{}'),
    'task_age_minutes', floor(extract(epoch from tasker.now() - t.created_at) / 60),
    'time_in_state_minutes', floor(extract(epoch from tasker.now() - t.updated_at) / 60),
    'total_steps', t.total, 'completed_steps', t.done, 'failed_steps', t.failed, 'workflow_steps', (
      select coalesce(
        jsonb_agg(jsonb_strip_nulls(jsonb_build_object('workflow_step_uuid', s.workflow_step_uuid,
        'name', s.name, 'current_state', s.state, 'attempts', s.attempts, 'max_attempts', s.max_attempts,
        'last_error', f.error)) order by s.workflow_step_uuid), '[]')
      from (select * from tasker.workflow_steps s
        where s.task_uuid = t.task_uuid and not tasker.step_satisfies(s.state, s.settled)
        order by s.state <> 'error', s.workflow_step_uuid limit 50) s
      left join lateral (select jsonb_build_object('error_type', x.error->'error_type',
          'error_code', x.error->'error_code', 'message', left(x.error->>'message', 500),
          'attempt', x.attempt, 'at', x.created_at, 'fingerprint', x.error->'fingerprint') as error
        from tasker.step_failures x
        where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
        order by x.failure_id desc limit 1) f on true))
  from tasker.tasks t
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
  join tasker.templates m on m.template_id = t.template_id
  where t.task_uuid = p_task
$$;

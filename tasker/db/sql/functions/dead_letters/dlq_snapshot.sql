-- The snapshot of a task in its dead letter, from the rows as they are now: the state of the task, and its unfinished
-- steps, at most 50, with the last failure of each failed one. Messages are truncated; the history has them in full.
create or replace function tasker.dlq_snapshot(p_task uuid) returns jsonb
language sql stable
as $$
  select jsonb_build_object('task_uuid', t.task_uuid, 'namespace', ns.name, 'namespace_name', ns.name,
    'task_name', nt.name, 'template_name', nt.name, 'version', nt.version, 'current_state', t.state,
    'priority', t.priority, 'detection_time', tasker.now(), 'template_configuration', coalesce(m.lifecycle, '{}'),
    'task_age_minutes', floor(extract(epoch from tasker.now() - t.created_at) / 60),
    'time_in_state_minutes', floor(extract(epoch from tasker.now() - t.updated_at) / 60),
    'total_steps', t.total, 'completed_steps', t.done, 'failed_steps', t.failed, 'workflow_steps', (
      select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('workflow_step_uuid', s.workflow_step_uuid,
        'name', s.name, 'current_state', s.state, 'attempts', s.attempts, 'max_attempts', s.max_attempts,
        'last_error', f.error)) order by s.workflow_step_uuid), '[]')
      from (select * from tasker.workflow_steps s where s.task_uuid = t.task_uuid and not tasker.step_is_done(s.state)
        order by s.state <> 'error', s.workflow_step_uuid limit 50) s
      left join lateral (select jsonb_build_object('error_type', x.error->'error_type', 'error_code', x.error->'error_code',
          'message', left(x.error->>'message', 500), 'attempt', x.attempt, 'at', x.created_at,
          'fingerprint', x.error->'fingerprint') as error
        from tasker.step_failures x where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
        order by x.failure_id desc limit 1) f on true))
  from tasker.tasks t
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
  join tasker.templates m on m.template_id = t.template_id
  where t.task_uuid = p_task
$$;

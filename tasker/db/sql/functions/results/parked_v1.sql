-- Parked steps with what the processor needs: their results or failures and how they were parked. Without `steps`,
-- those parked longer than `older_ms` (their message was lost). p_args: {steps: [uuid...]} or {older_ms, limit}, events (true: say of
-- each whether events are stored with it; releases that do not know the key do not ask for it).
-- Answer: {items: [{step, task, token, worker, template, ordinal, name, attempt, kind, delay_ms, result,
--   namespace, correlation, trace}], in order of steps, unknown: [steps that do not exist]}.
create or replace function tasker.parked_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('items', coalesce(jsonb_agg(jsonb_build_object('step', s.workflow_step_uuid,
      'task', s.task_uuid, 'token', s.claim_token, 'worker', s.worker_uuid, 'template', s.template_id, 'ordinal', s.ordinal, 'name', s.name,
      'attempt', s.attempts, 'kind', l.metadata->>'kind', 'delay_ms', l.metadata->'delay_ms',
      'result', (select r.result from tasker.step_results r where r.task_uuid = s.task_uuid and r.ordinal = s.ordinal
        and r.workflow_step_uuid = s.workflow_step_uuid),
      'namespace', (select n.name from tasker.task_namespaces n where n.namespace_id = s.namespace_id),
      'correlation', d.correlation_id, 'trace', d.trace)
      || case when p_args ? 'events' then jsonb_build_object('publishes', exists (select from tasker.parked_events p
        where p.workflow_step_uuid = s.workflow_step_uuid and p.claim_token = s.claim_token)) else '{}' end order by s.workflow_step_uuid), '[]'),
    'unknown', (select jsonb_agg(g.step) from (select jsonb_array_elements_text(p_args->'steps')::uuid as step) g
      where not exists (select from tasker.workflow_steps x where x.workflow_step_uuid = g.step)))
  from tasker.workflow_steps s
  cross join lateral (select l.metadata from tasker.step_moves l
    where l.workflow_step_uuid = s.workflow_step_uuid and l.sort_key = s.sort_key) l
  join tasker.task_details d on d.task_uuid = s.task_uuid
  where s.workflow_step_uuid = any (array(select jsonb_array_elements_text(p_args->'steps')::uuid))
    and tasker.step_is_parked(s.state)
$$;

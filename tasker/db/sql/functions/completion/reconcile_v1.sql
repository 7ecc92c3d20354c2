-- After a lost connection: the steps claimed for this worker that it does not have, because their claim was committed
-- and the answer was lost. They were not started, so the caller releases them; no attempt is used.
-- p_args: {worker, held: [[step, token]...]}.
-- Returns: {items: [{s, t, k}...]}.
create or replace function tasker.reconcile_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  select jsonb_build_object('items', coalesce(jsonb_agg(jsonb_build_object('s', s.workflow_step_uuid, 't', s.task_uuid,
    'k', s.claim_token)), '[]'))
  from tasker.tasks t   -- running steps belong to tasks under way
  join tasker.workflow_steps s on s.workflow_step_uuid between t.task_uuid and tasker.step_uuid(t.task_uuid, 16777215)
  where not t.complete and not t.waits and s.state = 'in_progress' and s.worker_uuid = (p_args->>'worker')::uuid
    and not exists (select from jsonb_array_elements(p_args->'held') h
                    where (h->>0)::uuid = s.workflow_step_uuid and (h->>1)::bigint = s.claim_token)
$$;

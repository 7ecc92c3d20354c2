-- Restarts the timeout of a claimed step whose handler is called only now, because it waited for a thread or a child
-- process. Only the worker with the current token may call it.
-- p_args: {worker, step, token, timeout_ms, grace_ms}.
-- Returns: {} or {lost: true}.
create or replace function tasker.begin_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
begin
  update tasker.workflow_steps set updated_at = v_now, deadline_at = v_now
    + tasker.ms(coalesce((p_args->>'timeout_ms')::numeric, 30000)) + tasker.ms(coalesce((p_args->>'grace_ms')::numeric, 10000))
  where workflow_step_uuid = (p_args->>'step')::uuid and state = 'in_progress' and claim_token = (p_args->>'token')::bigint
    and worker_uuid = (p_args->>'worker')::uuid;
  return case when found then '{}' else jsonb_build_object('lost', true) end;
end
$$;

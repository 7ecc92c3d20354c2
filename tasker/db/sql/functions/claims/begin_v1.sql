-- Restarts the timeout of a claimed step whose handler is called only now, because it waited for a thread or
-- a child process. Only the worker with the current token may call it.
-- Locks: step.
-- p_args: {worker, step, token, timeout_ms, grace_ms}.
-- Returns: {} or {lost: true}.
create or replace function tasker.begin_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_timeout_ms constant bigint not null := tasker.clamped_ms((p_args->>'timeout_ms')::numeric);
  v_grace_ms constant bigint not null := tasker.clamped_ms((p_args->>'grace_ms')::numeric);
begin
  update tasker.workflow_steps set updated_at = v_now,
    deadline_at = tasker.deadline(v_now, v_timeout_ms, v_grace_ms)
  where workflow_step_uuid = (p_args->>'step')::uuid and state = 'in_progress'
    and claim_token = (p_args->>'token')::bigint
    and worker_uuid = (p_args->>'worker')::uuid;
  return case when found then '{}' else jsonb_build_object('lost', true) end;
end
$$;

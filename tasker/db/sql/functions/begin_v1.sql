-- Counts the time of a claimed step from now on: it had to wait for a thread or a child process, and its handler is called
-- only now. Only the holder of the current token may say so.
-- p_args: {step, token, timeout_ms, grace_ms}. Answer: {} or {lost: true}.
create or replace function tasker.begin_v1(p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_now constant timestamptz := tasker.now();
begin
  update tasker.workflow_steps set updated_at = v_now, deadline_at = v_now
    + (coalesce((p_args->>'timeout_ms')::bigint, 30000) + coalesce((p_args->>'grace_ms')::bigint, 10000)) * interval '1 millisecond'
  where workflow_step_uuid = (p_args->>'step')::uuid and state = 'in_progress' and claim_token = (p_args->>'token')::bigint;
  return case when found then '{}' else jsonb_build_object('lost', true) end;
end
$$;

-- A claim as workers get it. `p_own` is what tasker.own_inputs says of the step; null: it has neither inputs
-- of its own nor a checkpoint. `p_isolated`: its handler may have ended processes. The planner puts the
-- expression in place of the call.
create or replace function tasker.claim_json(p_step uuid, p_task uuid, p_name text, p_template int,
  p_ordinal int, p_token bigint, p_attempt int, p_own jsonb, p_isolated boolean) returns jsonb
language sql stable parallel safe as $$
  select jsonb_build_object('step', p_step, 'task', p_task, 'name', p_name, 'template', p_template,
    'ordinal', p_ordinal, 'token', p_token, 'attempt', p_attempt, 'inputs', p_own->'inputs',
    'checkpoint', p_own->'checkpoint', 'later', p_own->'later', 'apart', p_isolated)
$$;

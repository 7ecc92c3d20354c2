-- A claim as workers get it. `p_own` is what tasker.own_inputs says of the step; null: it has neither inputs
-- of its own nor a checkpoint. `p_isolated`: its handler may have ended processes; `p_ran_ms`: as
-- tasker.ran_ms. The planner puts the expression in place of the call.
create or replace function tasker.claim_json(p_step uuid, p_task uuid, p_name text, p_template int,
  p_ordinal int,
  p_token bigint, p_attempt int, p_own jsonb, p_isolated boolean, p_ran_ms bigint) returns jsonb
language sql stable parallel safe as $$
  select jsonb_build_object('step', p_step, 'task', p_task, 'name', p_name, 'template', p_template,
    'ordinal', p_ordinal, 'token', p_token, 'attempt', p_attempt, 'inputs', p_own->'inputs',
    'checkpoint', p_own->'checkpoint', 'later', p_own->'later', 'apart', p_isolated, 'ran_ms', p_ran_ms)
$$;

-- The milliseconds since the first attempt of a step began, for further attempts of a step with
-- `max_elapsed`; null for every other one. A reset begins anew.
create or replace function tasker.ran_ms(p_step uuid, p_template int, p_ordinal int) returns bigint
language sql stable as $$
  select (extract(epoch from tasker.now() - (select max(m.created_at) from tasker.step_moves m
    where m.workflow_step_uuid = p_step and m.attempt = 1
      and right(m.path, 1) = tasker.path_code('in_progress'))) * 1000)::bigint
  from tasker.template_steps ts
  where ts.template_id = p_template and ts.ordinal = p_ordinal and ts.max_elapsed_ms is not null
$$;

-- An operator action on one step, by name: reset, resolve or complete.
-- p_args: {task, step}, the fields of an item of advance_v1 (kind, n, r, x, gv), and what advance_v1 needs
--   beside items.
-- Returns: as advance_v1, or {missing: true}; `state` is the step's previous state.
create or replace function tasker.operator_change_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_step tasker.workflow_steps;
begin
  select * into v_step from tasker.workflow_steps
  where task_uuid = (p_args->>'task')::uuid and name = p_args->>'step';
  if v_step.workflow_step_uuid is null then
    return jsonb_build_object('missing', true);
  end if;
  return jsonb_build_object('state', v_step.state) || tasker.advance_v1(p_args || jsonb_build_object(
    'events', true, 'items', jsonb_build_array(p_args - '{task,step}'::text[]
      || jsonb_build_object('s', v_step.workflow_step_uuid, 't', v_step.task_uuid))));
end
$$;

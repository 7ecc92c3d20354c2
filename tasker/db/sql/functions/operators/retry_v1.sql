-- Retries a failed task as an operator action: resets every step in `error`, in one transaction. Steps that
-- may run only once (effect: once, on_worker_lost: fail) and whose outcome is unknown are left: an operator
-- must name them.
-- Locks: task, then as advance_v1.
-- p_args: {task, n}.
-- Returns: as advance_v1, with the previous state of the task and the names of the steps, {state, reset,
--   left}; a cancelled task does not change; {missing: true}: no such task.
create or replace function tasker.retry_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_task constant uuid := (p_args->>'task')::uuid;
  v_state text;
  v_items jsonb;
  v_reset jsonb;
  v_left jsonb;
begin
  perform tasker.require_read_committed();
  -- rule 1: before its steps
  select t.state into v_state from tasker.tasks t where t.task_uuid = v_task for no key update;
  if v_state is null then
    return jsonb_build_object('missing', true);
  end if;

  select jsonb_agg(jsonb_build_object('s', q.step, 't', v_task, 'kind', 'reset', 'n', p_args->'n'))
    filter (where not q.once),
    jsonb_agg(q.name order by q.step) filter (where not q.once),
    jsonb_agg(q.name order by q.step) filter (where q.once)
  into v_items, v_reset, v_left from (
    select s.workflow_step_uuid as step, s.name,
      ts.on_worker_lost = 'fail'
        and coalesce(f.error_type in ('worker_lost', 'outcome_unknown'), false) as once
    from tasker.workflow_steps s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    left join lateral (select x.error->>'error_type' as error_type from tasker.step_failures x
      where x.task_uuid = v_task and x.workflow_step_uuid = s.workflow_step_uuid
      order by x.failure_id desc limit 1) f on true
    where s.task_uuid = v_task and s.state = 'error' and s.settled is null and v_state <> 'cancelled'
      and tasker.is_repaired_with_its_task(v_task, ts)) q;

  return jsonb_build_object('state', v_state, 'reset', coalesce(v_reset, '[]'),
    'left', coalesce(v_left, '[]'))
    || case when v_items is null then '{}'
      else tasker.advance_v1(p_args - '{task,n}'::text[] || jsonb_build_object('items', v_items)) end;
end
$$;

-- True if a repair of a whole task runs a failed step of it again. In a task whose effects are undone these
-- are the compensations, and then the steps of `finally`; in others all steps, but those of `finally` only
-- if no other failed: after these they run again in any case.
create or replace function tasker.is_repaired_with_its_task(p_task uuid, p_step tasker.template_steps)
returns boolean
language sql stable as $$
  select case
    when t.outcome in ('compensating', 'compensated', 'compensation_failed') then p_step.undoes is not null
      or p_step.gates & 4096 <> 0 and t.outcome = 'compensated'
    else p_step.gates & 4096 = 0 or not exists (select from tasker.workflow_steps o
      join tasker.template_steps ots on ots.template_id = o.template_id and ots.ordinal = o.ordinal
      where o.task_uuid = p_task and o.state = 'error' and o.settled is null and ots.gates & 4096 = 0) end
  from tasker.tasks t where t.task_uuid = p_task
$$;

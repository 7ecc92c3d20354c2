-- Creates the steps of `finally` of tasks that have come to rest, and makes them ready in this transaction.
-- A task that an operator continued comes to rest again: its steps of `finally` run again, as new steps
-- (`report.2`), and those that failed before do not count any more.
-- Locks: as advance_v1. The caller has locked the tasks; the steps are new.
-- p_phase: `f`, or `x` after a cancel. p_args: worker, note, on_blocked, dead_letters, window, timeout_ms,
--   grace_ms as advance_v1.
-- Returns: {send, begins_in_ms, finished, at, waiters} as advance_v1, without those that are null.
create or replace function tasker.begin_finally(p_tasks uuid[], p_phase "char", p_args jsonb,
  p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_task uuid;
  v_steps jsonb;
  v_failed int;
  v_items jsonb;
  v_answer jsonb;
begin
  foreach v_task in array array(select t from unnest(p_tasks) t order by t) loop
    with failed as (
      update tasker.workflow_steps s set settled = 'o', updated_at = p_now from tasker.template_steps ts
      where s.task_uuid = v_task and s.state = 'error' and s.settled is null
        and ts.template_id = s.template_id and ts.ordinal = s.ordinal and ts.gates & 4096 <> 0
      returning 1
    )
    select count(*) into v_failed from failed;
    update tasker.tasks t set phase = p_phase, failed = t.failed - v_failed, done = t.done + v_failed
    where t.task_uuid = v_task;
    select jsonb_agg(jsonb_build_object('name', ts.name || coalesce('.' || nullif(r.runs, 1), ''),
      'ordinal', ts.ordinal, 'parents', '[]'::jsonb) order by ts.ordinal) into v_steps
    from tasker.tasks t
    join tasker.template_steps ts on ts.template_id = t.template_id and ts.gates & 4096 <> 0
    cross join lateral (select 1 + count(*) from tasker.workflow_steps s
      where s.task_uuid = t.task_uuid and s.ordinal = ts.ordinal) as r (runs)
    where t.task_uuid = v_task;
    perform tasker.expand_step(v_task, v_steps, p_now);
  end loop;
  select jsonb_agg(jsonb_build_object('s', s.workflow_step_uuid, 't', s.task_uuid, 'kind', 'unhold'))
  into v_items
  from tasker.workflow_steps s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  where s.task_uuid = any (p_tasks) and s.state = 'pending' and ts.gates & 4096 <> 0;
  v_answer := tasker.advance_v1(jsonb_strip_nulls(jsonb_build_object('worker', p_args->'worker',
    'note', p_args->'note', 'on_blocked', p_args->'on_blocked', 'dead_letters', p_args->'dead_letters',
    'window', p_args->'window', 'timeout_ms', p_args->'timeout_ms', 'grace_ms', p_args->'grace_ms',
    'grants', false, 'items', v_items)));
  return jsonb_strip_nulls(v_answer - '{verdicts,claims}'::text[]);
end
$$;

-- Cancels expired tasks of which no step was ever claimed, with the reason `expired`, and deletes the timers
-- of all. The caller has locked the tasks.
-- Locks: steps, then as cancel_v1. Those of a task in their order, so that none is claimed between the look
--   and the end.
-- Returns: p_answer with the tasks that ended (`finished`, `waiters`), which count as promoted.
create or replace function tasker.expire_tasks(p_tasks uuid[], p_args jsonb, p_answer jsonb) returns jsonb
language plpgsql as $$
declare
  v_unbegun uuid[] := '{}';
  v_task uuid;
  v_answer jsonb;
begin
  foreach v_task in array array(select t from unnest(p_tasks) t order by t) loop
    perform from tasker.workflow_steps s where s.task_uuid = v_task
    order by s.workflow_step_uuid for no key update;
    if not exists (select from tasker.workflow_steps s where s.task_uuid = v_task and s.claim_token > 0) then
      v_unbegun := v_unbegun || v_task;
    end if;
  end loop;
  v_answer := tasker.cancel_tasks(v_unbegun, 'expired', p_args, p_answer);
  delete from tasker.timers m where m.subject = any (p_tasks) and m.kind = 'x';
  return v_answer || jsonb_build_object('promoted', coalesce((v_answer->>'promoted')::int, 0)
    + cardinality(p_tasks) - cardinality(v_unbegun));
end
$$;

-- Cancels tasks for a reason of the engine's own. The caller has locked them. A task whose compensations or
-- steps of `finally` are under way is left: it ends soon, and only a person ends these.
-- Locks: as cancel_v1.
-- Returns: p_answer with the tasks that ended (`finished`, `waiters`); all count as promoted.
create or replace function tasker.cancel_tasks(p_tasks uuid[], p_reason text, p_args jsonb,
  p_answer jsonb) returns jsonb
language plpgsql as $$
declare
  v_answer jsonb := p_answer;
  v_task uuid;
  v_ended jsonb;
begin
  foreach v_task in array array(select t.task_uuid from unnest(p_tasks) as p (id)
    join tasker.tasks t on t.task_uuid = p.id
    where t.phase is null or tasker.task_is_blocked(t.state) order by t.task_uuid) loop
    v_ended := tasker.cancel_v1(p_args - '{items,claims}'::text[]
      || jsonb_build_object('task', v_task, 'reason', p_reason, 'actor', 'tasker'));
    v_answer := v_answer || jsonb_strip_nulls(jsonb_build_object(
      'finished', coalesce(v_answer->'finished', '{}') || coalesce(v_ended->'finished', '{}'),
      'at', tasker.now(),
      'send', nullif(coalesce(nullif(v_answer->'send', 'null'), '[]')
        || coalesce(v_ended->'send', '[]'), '[]'),
      'waiters', nullif(coalesce(v_answer->'waiters', '{}') || coalesce(v_ended->'waiters', '{}'), '{}')));
  end loop;
  return v_answer
    || jsonb_build_object('promoted', coalesce((v_answer->>'promoted')::int, 0) + cardinality(p_tasks));
end
$$;

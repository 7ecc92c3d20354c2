-- Fails the open steps of tasks whose deadline has passed, with the error type `deadline_exceeded`, so that
-- the tasks end in `error`; workers stop their handlers. A step whose result waits for an orchestrator has
-- ended in time and is left: the timer of its task is due again after a second, until nothing is left to
-- fail. The caller has locked the tasks.
-- Locks: as advance_v1.
-- Returns: p_answer with the tasks that ended (`finished`, `waiters`), which count as promoted.
create or replace function tasker.fail_overdue_tasks(p_tasks uuid[], p_args jsonb, p_answer jsonb)
returns jsonb
language plpgsql as $$
declare
  v_now constant timestamptz := tasker.now();
  v_items jsonb;
  v_ended jsonb := '{}';
  v_blocked uuid[];
begin
  select jsonb_agg(jsonb_build_object('s', s.workflow_step_uuid, 't', s.task_uuid, 'kind', 'expire',
    'running', s.state = 'in_progress',
    'e', jsonb_build_object('error_type', 'deadline_exceeded', 'retryable', false,
      'message', format('the deadline of the task, %s, has passed',
        to_char(d.deadline_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')),
      'final',
      'the deadline of the task has passed', 'final_reason', 'deadline_exceeded', 'attempt', s.attempts,
      'fingerprint', left(md5('deadline_exceeded ' || s.template_id || ':' || s.ordinal), 16))))
  into v_items
  from unnest(p_tasks) as t (id)
  join tasker.task_details d on d.task_uuid = t.id
  join tasker.tasks x on x.task_uuid = t.id and x.phase is null   -- it ends without its steps of `finally`
  join tasker.workflow_steps s on s.task_uuid = t.id
  where tasker.step_path(s.state, 'expire') is not null and (s.state <> 'pending' or s.unmet = 0);
  if v_items is not null then
    v_ended := tasker.advance_v1(p_args
      || jsonb_build_object('items', v_items, 'wait', false, 'on_blocked', 'give_up',
      'note', '{"reason": "deadline_exceeded"}'::jsonb));
    perform pg_notify('tasker_cancelled', q.task) from (select distinct i->>'t' as task
      from jsonb_array_elements(v_items) i where (i->>'running')::boolean) q;
  end if;
  v_blocked := array(select t.task_uuid from tasker.tasks t
    where t.task_uuid = any (p_tasks) and t.active = 0 and tasker.task_is_blocked(t.state)
      and not t.complete);
  if v_blocked <> '{}' then   -- they waited for an operator
    v_ended := tasker.merged_ends(v_ended,
      tasker.evaluate_v1(p_args || jsonb_build_object('tasks', v_blocked, 'on_blocked', 'give_up')));
  end if;
  update tasker.timers m set due_at = v_now + interval '1 second'
  where m.kind = 'd' and m.subject = any (p_tasks)
    and exists (select from tasker.tasks t where t.task_uuid = m.subject and t.phase is null)
    and exists (select from tasker.workflow_steps s
      where s.task_uuid = m.subject and tasker.step_is_active(s.state));
  delete from tasker.timers m where m.kind = 'd' and m.subject = any (p_tasks) and m.due_at <= v_now;
  return tasker.merged_ends(p_answer, v_ended) || jsonb_build_object('at', v_now,
    'promoted', coalesce((p_answer->>'promoted')::int, 0) + cardinality(p_tasks));
end
$$;

-- The second answer of a write over the first one, with the tasks that ended with either.
create or replace function tasker.merged_ends(p_first jsonb, p_second jsonb) returns jsonb
language sql immutable as $$
  select jsonb_strip_nulls(p_first) || jsonb_strip_nulls(p_second) || jsonb_strip_nulls(jsonb_build_object(
    'send', nullif(coalesce(nullif(p_first->'send', 'null'), '[]')
      || coalesce(nullif(p_second->'send', 'null'), '[]'), '[]'),
    'finished', nullif(coalesce(nullif(p_first->'finished', 'null'), '{}')
      || coalesce(nullif(p_second->'finished', 'null'), '{}'), '{}'),
    'waiters', nullif(coalesce(nullif(p_first->'waiters', 'null'), '{}')
      || coalesce(nullif(p_second->'waiters', 'null'), '{}'), '{}')))
$$;

-- Evaluates tasks again without any change of a step: the sweep's repair of a task that is not final although
-- all its steps are. Recounts the counters from the rows under the task's lock.
-- Locks: tasks (skips).
-- p_args: {tasks: [uuid...], on_blocked, dead_letters, window, timeout_ms, grace_ms, repairs (the kind of
--   this repair; counted with it)}.
-- Returns: {settled: count} and as evaluate_tasks.
create or replace function tasker.evaluate_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_tasks uuid[];
begin
  perform tasker.require_read_committed();
  select array_agg(q.task_uuid) into v_tasks from (
    select t.task_uuid from tasker.tasks t
    where t.task_uuid = any (array(select jsonb_array_elements_text(p_args->'tasks')::uuid))
      and not t.complete
    order by t.task_uuid for no key update skip locked) q;
  if v_tasks is null then
    return '{}';
  end if;
  if p_args ? 'repairs' then
    perform tasker.record_repairs_v1(jsonb_build_object(p_args->>'repairs', cardinality(v_tasks)));
  end if;
  return jsonb_build_object('settled', cardinality(v_tasks)) || coalesce((
    select tasker.evaluate_tasks(array_agg(row(n.*)::tasker.task_change),
      p_args - 'worker' || '{"note": {"sweep": true}}', tasker.now())
    from (
      select t.task_uuid,
        (count(*) filter (where tasker.step_satisfies(s.state, s.settled)) - t.done)::int as done,
        (count(*) filter (where s.state = 'error' and s.settled is null) - t.failed)::int as failed,
        (count(*) filter (where s.state = 'cancelled' and s.settled is null) - t.cancelled)::int as cancelled,
        (count(*) filter (where tasker.step_is_active(s.state)) - t.active)::int as active,
        (count(*) filter (where s.state = 'waiting_for_retry') - t.retrying)::int as retrying,
        (count(b.workflow_step_uuid) + count(m.subject) + count(w.workflow_step_uuid) - t.held)::int as held,
        0 as started, (count(*) filter (where tasker.is_suspended(s.state, s.worker_uuid))
          - t.suspended)::int as suspended
      from unnest(v_tasks) v (id) join tasker.tasks t on t.task_uuid = v.id
      join tasker.workflow_steps s on s.task_uuid = t.task_uuid
      left join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
      left join tasker.timers m on m.subject = s.workflow_step_uuid and m.kind = 'b'
      left join tasker.limit_waiters w on w.workflow_step_uuid = s.workflow_step_uuid
      group by t.task_uuid) n), '{}');
end
$$;

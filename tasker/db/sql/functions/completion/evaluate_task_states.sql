-- The end of a write, from its changes: the backlog, the counters and states of the tasks, the counters of
-- enqueued steps (these last: see count_enqueued). `p_backlog`: steps may have left or entered the backlog;
-- `p_queue`: steps have left or entered the queue.
-- Locks: backlog, tasks, counters.
-- Returns: as evaluate_tasks.
create or replace function tasker.evaluate_task_states(p_judged tasker.judged_change[],
  p_placed tasker.placed_step[], p_args jsonb,
  p_backlog boolean, p_queue boolean, p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_unheld uuid[];
  v_changes tasker.task_change[];
  v_ended jsonb;
begin
  if p_backlog then
    v_unheld := tasker.write_backlog_rows(p_judged, p_placed, p_now);
  end if;

  -- A release alone changes no counter and no task.
  select array_agg(row(n.*)::tasker.task_change) into v_changes
  from (
    select m.task_uuid, sum(m.done)::int, sum(m.failed)::int, sum(m.cancelled)::int, sum(m.active)::int,
      sum(m.retrying)::int, sum(m.held)::int, sum(m.started)::int, sum(m.suspended)::int
    from (
      select j.task_uuid, tasker.step_satisfies(j.to_state, j.settled)::int as done,
        (j.to_state = 'error' and j.settled is null)::int - (j.from_state = 'error')::int as failed,
        (j.to_state = 'cancelled' and j.settled is null)::int as cancelled,
        tasker.kind_suspends(j.kind)::int - tasker.step_is_active(j.from_state)::int as active,
        (j.to_state = 'waiting_for_retry')::int - (j.from_state = 'waiting_for_retry')::int as retrying,
        0 as held, tasker.kind_suspends(j.kind)::int as started,
        tasker.kind_suspends(j.kind)::int - tasker.is_suspended(j.from_state, j.worker_uuid)::int as suspended
      from unnest(p_judged) j where not tasker.kind_leaves_task(j.kind)
      union all
      select p.task_uuid, 0, 0, 0, (p.place <> 'hold')::int, 0, (p.place = 'hold')::int,
        (p.place <> 'hold')::int, (p.place = 'suspend')::int
      from unnest(p_placed) p
      where p.place in ('claim', 'enqueue', 'hold', 'suspend') and p.from_state <> 'in_progress'
      union all   -- claims that are released to the backlog
      select p.task_uuid, 0, 0, 0, -1, 0, 1, 0, 0
      from unnest(p_placed) p where p.place = 'hold' and p.from_state = 'in_progress'
      union all
      select u, 0, 0, 0, 0, 0, -1, 0, 0 from unnest(v_unheld) u
    ) m group by m.task_uuid
  ) n;
  v_ended := tasker.evaluate_tasks(v_changes, p_args, p_now);

  if p_queue then
    perform tasker.count_enqueued(array_agg(m.namespace_id), array_agg(m.delta))
    from (
      select j.namespace_id, -1 as delta from unnest(p_judged) j where j.from_state = 'enqueued'
      union all
      select p.namespace_id, 1 from unnest(p_placed) p where p.place = 'enqueue'
    ) m having count(*) > 0;
  end if;
  return v_ended;
end
$$;

-- Updates the backlog after a write: steps that moved leave it, steps that found no room enter it. A step that ran
-- before (a retry) keeps the age of its task. Returns the task of each step that left.
-- Locks: backlog. As every function that locks several of these rows.
create or replace function tasker.write_backlog_rows(p_judged tasker.judged_change[], p_placed tasker.placed_step[],
  p_now timestamptz) returns uuid[]
language plpgsql as $$
declare
  v_left uuid[];
begin
  with leaving as materialized (
    select b.workflow_step_uuid from tasker.ready_backlog b
    where b.workflow_step_uuid = any (array(select j.step_uuid from unnest(p_judged) j where j.from_state = 'pending'))
    order by b.workflow_step_uuid for update
  ), gone as (
    delete from tasker.ready_backlog b using leaving l where b.workflow_step_uuid = l.workflow_step_uuid
    returning b.task_uuid
  ) select array_agg(task_uuid) into v_left from gone;

  insert into tasker.ready_backlog (workflow_step_uuid, task_uuid, namespace_id, rank, paused)
  select p.step_uuid, p.task_uuid, p.namespace_id,
    tasker.backlog_rank(case when p.moved then t.created_at else p_now end, p.priority, p.held_rank), p.paused
  from unnest(p_placed) p join tasker.tasks t on t.task_uuid = p.task_uuid where p.place = 'hold';
  return v_left;
end
$$;

-- The rank of a backlogged step; the lowest is released first. It combines priority with ageing (a point of priority is
-- worth ten minutes of waiting) and rotation over tasks: the n-th backlogged step of one write ranks n/20 s
-- later, so one fan-out of 100,000 steps shares the queue with other ready steps. All steps age at the same rate, so a
-- rank never changes.
create or replace function tasker.backlog_rank(p_now timestamptz, p_priority int, p_nth int)
returns float8 language sql immutable parallel safe as $$
  select extract(epoch from p_now)::float8 - p_priority * 600.0::float8 + p_nth * 0.05
$$;

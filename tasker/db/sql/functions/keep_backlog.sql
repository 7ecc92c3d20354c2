-- The backlog of held steps after a write: steps that moved leave it, steps that found no room enter it. One that had
-- its turn before (a retry) keeps the age of its task. Answers the task of each step that left.
create or replace function tasker.keep_backlog(p_judged tasker.judged_change[], p_placed tasker.placed_step[],
  p_ageing_s float8, p_now timestamptz) returns uuid[]
language plpgsql as $$
declare
  v_left uuid[];
begin
  with gone as (
    delete from tasker.ready_backlog b using unnest(p_judged) j
    where b.workflow_step_uuid = j.step_uuid and j.from_state = 'pending' returning b.task_uuid
  ) select array_agg(task_uuid) into v_left from gone;

  insert into tasker.ready_backlog (workflow_step_uuid, task_uuid, namespace_id, rank, paused)
  select p.step_uuid, p.task_uuid, p.namespace_id,
    tasker.backlog_rank(case when p.moved then t.created_at else p_now end, p.priority, p.held_rank, p_ageing_s), p.paused
  from unnest(p_placed) p join tasker.tasks t on t.task_uuid = p.task_uuid where p.place = 'hold';
  return v_left;
end
$$;

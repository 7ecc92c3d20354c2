-- Removes the rows of the backlog among `p_steps` whose steps are not ready, and recounts the tasks of these
-- steps. Skips tasks that another transaction has locked.
-- Locks: tasks (skips), backlog, then as evaluate_v1.
-- p_args: {on_blocked}.
-- Returns: {dropped: count, finished: {task: state}, waiters}.
create or replace function tasker.delete_backlog_rows(p_steps uuid[], p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_tasks uuid[];
  v_dropped int;
begin
  select array_agg(q.task_uuid) into v_tasks from (
    select t.task_uuid from tasker.tasks t
    where t.task_uuid in (select h.task from tasker.stale_backlog_rows(p_steps) h)
    order by t.task_uuid for no key update skip locked) q;
  with gone as materialized (   -- a later statement: the step may have moved during the wait for a lock
    select b.workflow_step_uuid from tasker.ready_backlog b
    join tasker.stale_backlog_rows(p_steps) h on h.step = b.workflow_step_uuid
    where h.task = any (v_tasks) or not exists (select from tasker.tasks t where t.task_uuid = h.task)
    order by b.workflow_step_uuid for update of b
  )
  delete from tasker.ready_backlog b using gone g where b.workflow_step_uuid = g.workflow_step_uuid;
  get diagnostics v_dropped = row_count;
  update tasker.tasks t set held = 0 where t.task_uuid = any (v_tasks) and t.complete and t.held <> 0;
  return tasker.evaluate_v1(p_args || jsonb_build_object('tasks', coalesce(to_jsonb(v_tasks), '[]')))
    || jsonb_build_object('dropped', v_dropped);
end
$$;

-- The rows of the backlog among `p_steps` whose steps could not run even with room: deleted, moved on, of a
-- final task, or still waiting for parents.
create or replace function tasker.stale_backlog_rows(p_steps uuid[]) returns table (step uuid, task uuid)
language sql stable as $$
  select b.workflow_step_uuid, b.task_uuid from tasker.ready_backlog b
  left join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
  left join tasker.tasks t on t.task_uuid = s.task_uuid
  where b.workflow_step_uuid = any (p_steps)
    and (s.state = 'pending' and s.unmet = 0 and not t.complete) is not true
$$;

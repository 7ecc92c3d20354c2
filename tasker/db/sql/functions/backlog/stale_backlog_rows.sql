-- The rows of the backlog among `p_steps` whose steps could not run even with room: deleted, moved on, of a final task,
-- or still waiting for parents.
create or replace function tasker.stale_backlog_rows(p_steps uuid[]) returns table (step uuid, task uuid)
language sql stable as $$
  select b.workflow_step_uuid, b.task_uuid from tasker.ready_backlog b
  left join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
  left join tasker.tasks t on t.task_uuid = s.task_uuid
  where b.workflow_step_uuid = any (p_steps) and (s.state = 'pending' and s.unmet = 0 and not t.complete) is not true
$$;

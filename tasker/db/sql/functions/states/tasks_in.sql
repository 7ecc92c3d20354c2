-- The tasks that may be in a state (null: in any), for lists, which compare the state themselves: all tasks ever, those
-- that ended in trouble, or those that are open. Planned with the query around it, which then reads one of the three.
create or replace function tasker.tasks_in(p_state text) returns setof tasker.tasks
language sql stable as $$
  select * from tasker.tasks where coalesce(p_state, 'complete') = 'complete'
  union all
  select * from tasker.tasks where troubled and tasker.task_is_troubled(p_state)
  union all
  select * from tasker.tasks where not complete and not tasker.task_is_final(p_state)
$$;

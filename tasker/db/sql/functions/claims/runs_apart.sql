-- True when a step has lost its worker twice since it was made or reset: it may be what ended them, so its next attempt
-- runs apart from what else the worker does. Each attempt that ended has left one failure, so the newest ones are those
-- since the reset. Asked of third and later attempts only. `p_ended` is how many attempts have ended.
create or replace function tasker.runs_apart(p_task uuid, p_step uuid, p_ended int) returns boolean
language sql stable as $$
  select count(*) >= 2
  from (select f.error from tasker.step_failures f where f.task_uuid = p_task and f.workflow_step_uuid = p_step
        order by f.failure_id desc limit p_ended) f
  where f.error->>'error_type' = 'worker_lost'
$$;

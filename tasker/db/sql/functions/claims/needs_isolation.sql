-- True if a step has lost its worker twice since it was created or reset. The step may have crashed these
-- workers, so its next attempt runs isolated from other work. Each ended attempt left one failure, so the
-- newest failures are those since the reset. Called only for third and later attempts; `p_ended` is the
-- number of ended attempts.
create or replace function tasker.needs_isolation(p_task uuid, p_step uuid, p_ended int) returns boolean
language sql stable as $$
  select count(*) >= 2
  from (select f.error from tasker.step_failures f
        where f.task_uuid = p_task and f.workflow_step_uuid = p_step
        order by f.failure_id desc limit p_ended) f
  where f.error->>'error_type' = 'worker_lost' or f.error->'metadata'->>'cause' = 'worker_lost'
$$;

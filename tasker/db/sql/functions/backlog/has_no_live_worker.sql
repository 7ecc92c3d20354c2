-- True for a step that waits for a worker: it is in the queue, or set aside because no worker has its handler.
create or replace function tasker.has_no_live_worker(p_step tasker.workflow_steps) returns boolean
language sql stable as $$
  select p_step.state = 'enqueued' or tasker.step_is_to_run(p_step.state) and p_step.unmet = 0 and exists (
    select from tasker.ready_backlog b where b.workflow_step_uuid = p_step.workflow_step_uuid and b.unserved is not null)
$$;

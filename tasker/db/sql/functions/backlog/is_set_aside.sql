-- True for a held step that waits for somebody who has its handler.
create or replace function tasker.is_set_aside(p_step uuid) returns boolean
language sql stable as $$
  select exists (select from tasker.ready_backlog b where b.workflow_step_uuid = p_step and b.unserved is not null)
$$;

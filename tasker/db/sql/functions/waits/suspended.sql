-- True for a suspended step: in progress without a worker, with an open row of step_waits.
create or replace function tasker.is_suspended(p_state text, p_worker uuid) returns boolean
language sql immutable parallel safe as $$
  select p_state = 'in_progress' and p_worker is null
$$;

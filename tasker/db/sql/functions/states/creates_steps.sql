-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- True if the result of a step of this type may create steps.
create or replace function tasker.creates_steps(p_step_type text) returns boolean
language sql immutable parallel safe as $$
  select p_step_type in ('batchable', 'decision')
$$;

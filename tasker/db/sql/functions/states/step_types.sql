-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- True if the result of a step of this type may create steps.
create or replace function tasker.creates_steps(p_step_type text) returns boolean
language sql immutable parallel safe as $$
  select p_step_type in ('batchable', 'decision')
$$;

-- The name of edges from a step of this type to steps created while the task runs.
create or replace function tasker.edge_name(p_step_type text) returns text
language sql immutable parallel safe as $$
  select case when p_step_type = 'batch_worker' then 'batch_convergence_dependency' else 'dependency' end
$$;

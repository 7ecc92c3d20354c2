-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The kind of a worker's report, by its path in the history: true for a result, false for a failure, null for neither.
create or replace function tasker.path_succeeded(p_code text) returns boolean
language sql immutable parallel safe as $$
  select case when left(p_code, 2) = 'IO' then true when left(p_code, 2) = 'IX' then false end
$$;

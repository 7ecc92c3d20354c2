-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- What a worker brought, from the path that it left in the history: true a result, false a failure, null neither.
create or replace function tasker.brought(p_code text) returns boolean
language sql immutable parallel safe as $$
  select case when left(p_code, 2) = 'IO' then true when left(p_code, 2) = 'IX' then false end
$$;

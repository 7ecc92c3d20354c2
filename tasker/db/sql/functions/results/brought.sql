-- What a worker brought, from the path that it left in the history: true a result, false a failure, null neither.
create or replace function tasker.brought(p_code text) returns boolean
language sql immutable parallel safe as $$
  select case left(p_code, 2) when 'IO' then true when 'IX' then false end
$$;

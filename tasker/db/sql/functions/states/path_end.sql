-- The last state of a path.
create or replace function tasker.path_end(p_path text) returns text
language sql immutable parallel safe as $$
  select split_part(p_path, '>', -1)
$$;

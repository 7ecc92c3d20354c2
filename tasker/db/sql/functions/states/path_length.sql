-- The number of transitions in a path that begins with the state before the first of them.
create or replace function tasker.path_length(p_path text) returns int
language sql immutable parallel safe as $$
  select octet_length(p_path) - 1
$$;

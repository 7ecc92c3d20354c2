-- How many transitions a path holds that begins with the state before the first of them. Names its parameter once: the
-- planner puts it in place of the call only then, and a call is planned anew in each statement.
create or replace function tasker.path_length(p_path text) returns int
language sql immutable parallel safe as $$
  select length(translate(p_path, 'abcdefghijklmnopqrstuvwxyz_', ''))
$$;

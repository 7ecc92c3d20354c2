-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The path of a step to this place, continued from the path that made it ready.
create or replace function tasker.placed_path(p_path text, p_place text) returns text
language sql immutable parallel safe as $$
  select p_path || case p_place
    when 'claim' then case when p_path like '%E' then 'I' else 'EI' end
    when 'enqueue' then case when p_path like '%E' then '' else 'E' end
    else '' end
$$;

-- The state of a step at this place; null if its state does not change.
create or replace function tasker.place_state(p_place text) returns text
language sql immutable parallel safe as $$
  select case p_place when 'claim' then 'in_progress' when 'enqueue' then 'enqueued' end
$$;

-- The fencing token of claims of a step at this place.
create or replace function tasker.place_token(p_place text, p_token bigint) returns bigint
language sql immutable parallel safe as $$
  select p_token + case when p_place = 'claim' then 1 else 0 end
$$;

-- The number of attempts after the change.
create or replace function tasker.place_attempts(p_place text, p_attempts int) returns int
language sql immutable parallel safe as $$
  select case when p_place = 'claim' then least(p_attempts, 2147483646) + 1 else p_attempts end
$$;

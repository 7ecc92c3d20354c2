-- A number of milliseconds that can be added to times: negative ones are none, and a century is the longest. Whatever
-- number a row, a template or a caller gives, no interval overflows. Null stays null.
create or replace function tasker.clamped_ms(p_milliseconds numeric) returns bigint
language sql immutable parallel safe as $$
  select (case when p_milliseconds > 3155760000000 then 3155760000000 when p_milliseconds < 0 then 0
    else p_milliseconds end)::bigint
$$;

-- A number of milliseconds that can be added to times: negative values become 0, and a century is the maximum, so that
-- no value of a row, a template or a caller overflows an interval. Null stays null.
create or replace function tasker.clamped_ms(p_milliseconds numeric) returns bigint
language sql immutable parallel safe as $$
  select (case when p_milliseconds > 3155760000000 then 3155760000000 when p_milliseconds < 0 then 0
    else p_milliseconds end)::bigint
$$;

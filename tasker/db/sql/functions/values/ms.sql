-- Milliseconds as an interval, between 0 and a century (tasker.clamped_ms). Null stays null.
create or replace function tasker.ms(p_milliseconds numeric) returns interval
language sql immutable parallel safe as $$
  select (case when p_milliseconds > 3155760000000 then 3155760000000 when p_milliseconds < 0 then 0
    else p_milliseconds end)::float8 * interval '1 millisecond'
$$;

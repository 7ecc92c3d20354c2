-- Milliseconds as an interval, between 0 and a century (tasker.clamped_ms). Null stays null.
create or replace function tasker.ms(p_milliseconds numeric) returns interval
language sql immutable parallel safe as $$
  select (case when p_milliseconds > 3155760000000 then 3155760000000 when p_milliseconds < 0 then 0
    else p_milliseconds end)::float8 * interval '1 millisecond'
$$;

-- A number of milliseconds that can be added to times: negative values become 0, and a century is the
-- maximum, so that no value of a row, a template or a caller overflows an interval. Null stays null.
create or replace function tasker.clamped_ms(p_milliseconds numeric) returns bigint
language sql immutable parallel safe as $$
  select (case when p_milliseconds > 3155760000000 then 3155760000000 when p_milliseconds < 0 then 0
    else p_milliseconds end)::bigint
$$;

-- The deadline of a claim that begins at this time: after the timeout of its step and the grace of its
-- worker, neither of which counts for more than a century. The planner puts the expression in place of the
-- call.
create or replace function tasker.deadline(p_from timestamptz, p_timeout_ms bigint, p_grace_ms bigint)
returns timestamptz
language sql stable parallel safe as $$
  select p_from + (least(p_timeout_ms, 3155760000000) + least(p_grace_ms, 3155760000000))
    * interval '1 millisecond'
$$;

-- The lowest identifier of a task created at this moment or later. Identifiers begin with the milliseconds of
-- their time (UUID version 7), so the primary key finds the tasks of a time span.
create or replace function tasker.task_uuid_at(p_moment timestamptz) returns uuid
language sql immutable parallel safe as $$
  select (lpad(to_hex(greatest(0, extract(epoch from p_moment) * 1000)::bigint), 12, '0')
      || rpad('7', 20, '0'))::uuid
$$;

-- The lowest identifier that a task of this moment or later can have: identifiers begin with the milliseconds of their time
-- (version 7), so the primary key finds the tasks of a span of time.
create or replace function tasker.task_uuid_at(p_moment timestamptz) returns uuid
language sql immutable parallel safe as $$
  select (lpad(to_hex(greatest(0, extract(epoch from p_moment) * 1000)::bigint), 12, '0') || rpad('7', 20, '0'))::uuid
$$;

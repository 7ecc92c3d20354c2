-- The lowest identifier of a task created at this moment or later. Identifiers begin with the milliseconds of their
-- time (UUID version 7), so the primary key finds the tasks of a time span.
create or replace function tasker.task_uuid_at(p_moment timestamptz) returns uuid
language sql immutable parallel safe as $$
  select (lpad(to_hex(greatest(0, extract(epoch from p_moment) * 1000)::bigint), 12, '0') || rpad('7', 20, '0'))::uuid
$$;

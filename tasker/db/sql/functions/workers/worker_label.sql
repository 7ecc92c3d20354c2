-- The label of a worker: its name, else the last digits of its identifier, which the history shows too.
create or replace function tasker.worker_label(p_worker uuid, p_name text) returns text
language sql immutable parallel safe as $$
  select coalesce(nullif(p_name, ''), right(p_worker::text, 8))
$$;

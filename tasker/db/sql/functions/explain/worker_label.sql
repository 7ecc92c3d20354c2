-- What people call a worker: the name that it was given, else the last digits of its identifier, which are in the history too.
create or replace function tasker.worker_label(p_worker uuid, p_name text) returns text
language sql immutable parallel safe as $$
  select coalesce(nullif(p_name, ''), right(p_worker::text, 8))
$$;

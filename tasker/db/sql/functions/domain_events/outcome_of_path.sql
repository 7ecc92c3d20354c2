-- What a row of a step's history says of an attempt that it ended (event_outcome says the same of the change); null when it
-- ended none.
create or replace function tasker.outcome_of_path(p_code text) returns text language sql immutable parallel safe as $$
  select case when right(p_code, 1) = 'C' then 'success' when right(p_code, 1) = 'F' then 'permanent_failure'
    when right(p_code, 2) = 'XW' then 'retryable_failure' end
$$;

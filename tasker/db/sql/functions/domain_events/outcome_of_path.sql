-- The outcome of an attempt by the row of the history that ended it (event_outcome gives the same for the change); null
-- for rows that ended none.
create or replace function tasker.outcome_of_path(p_code text) returns text language sql immutable parallel safe as $$
  select case when right(p_code, 1) = 'C' then 'success' when right(p_code, 1) = 'F' then 'permanent_failure'
    when right(p_code, 2) = 'XW' then 'retryable_failure' end
$$;

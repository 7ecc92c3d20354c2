-- What a kind of change means to the events of its step; null for what ends no attempt. An operator who completes a step
-- gives it a result, so it has succeeded; one who takes it as done without says nothing of an outcome.
create or replace function tasker.event_outcome(p_kind text) returns text language sql immutable parallel safe as $$
  select case when tasker.kind_stores_result(p_kind) then 'success' when p_kind = 'retry' then 'retryable_failure'
    when tasker.kind_stores_failure(p_kind) then 'permanent_failure' end
$$;

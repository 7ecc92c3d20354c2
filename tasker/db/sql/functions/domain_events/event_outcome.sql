-- The outcome that events of the step are published for, by the kind of change; null for changes that end no attempt.
-- An operator who completes a step gives it a result, so the outcome is success; resolving a step without a result is
-- no outcome.
create or replace function tasker.event_outcome(p_kind text) returns text language sql immutable parallel safe as $$
  select case when tasker.kind_stores_result(p_kind) then 'success' when p_kind = 'retry' then 'retryable_failure'
    when tasker.kind_stores_failure(p_kind) then 'permanent_failure' end
$$;

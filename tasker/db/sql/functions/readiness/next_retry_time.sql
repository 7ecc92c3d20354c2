-- The time when a failed step may run again: after the requested delay since the last attempt, or else after a delay
-- since the failure that grows by powers of the multiplier, at most `p_max_backoff_seconds`. Null if neither time is
-- known. The number is bounded before it becomes an interval, so no number of attempts overflows.
create or replace function tasker.calculate_step_next_retry_time(backoff_request_seconds int, last_attempted_at timestamptz,
  failure_time timestamptz, attempts int, p_max_backoff_seconds int default 60, p_backoff_multiplier numeric default 2.0)
returns timestamptz language sql stable parallel safe as $$
  select case when $1 is not null and $2 is not null then $2 + make_interval(secs => $1)
    else $3 + make_interval(secs => tasker.calculate_backoff_delay($4, 1, $5, $6)) end
$$;

-- The delay in seconds after this number of attempts: `base_delay` times a power of the multiplier, at most
-- `p_max_backoff_seconds`.
create or replace function tasker.calculate_backoff_delay(attempts int, base_delay int, p_max_backoff_seconds int default 60,
  p_backoff_multiplier numeric default 2.0) returns int language sql immutable parallel safe as $$
  select least($2 * least(power($4, least(greatest(coalesce($1, 0), 0), 1000)), $3), $3)::int
$$;

-- True if a step could run now by its own values: the first attempt needs no permission to be retried.
create or replace function tasker.evaluate_step_state_readiness(current_state text, processed boolean, in_process boolean,
  dependencies_satisfied boolean, retry_eligible boolean, retryable boolean, next_retry_time timestamptz)
returns boolean language sql stable parallel safe as $$
  select ($1 = 'pending' or $1 = 'waiting_for_retry') and not $2 and not $3 and $4 and $5
    and ($7 is null or $7 <= tasker.now())
$$;

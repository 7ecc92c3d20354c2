-- Quarantines an event that a subscriber failed to process: it is retried after `retry_ms`, or given up and
-- left to an operator (null). Only the holder of the subscriber's lease may call it.
-- p_args: {name, holder, event, error, retry_ms}.
-- Returns: {kept: false if another holder has the lease by now, attempts: number of attempts so far}
create or replace function tasker.quarantine_event_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_attempts int;
begin
  insert into tasker.event_deliveries as d (subscriber, event_uuid, event, attempts, due_at, error,
    created_at, updated_at)
  select s.name, (p_args->'event'->>'event_id')::uuid, p_args->'event', 1,
    v_now + tasker.ms((p_args->>'retry_ms')::bigint), p_args->>'error', v_now, v_now
  from tasker.event_subscribers s where s.name = p_args->>'name' and s.holder = (p_args->>'holder')::uuid
  on conflict (subscriber, event_uuid) do update
    set attempts = d.attempts + 1, due_at = excluded.due_at, error = excluded.error,
      updated_at = excluded.updated_at
  returning attempts into v_attempts;
  return jsonb_build_object('kept', v_attempts is not null, 'attempts', v_attempts);
end
$$;

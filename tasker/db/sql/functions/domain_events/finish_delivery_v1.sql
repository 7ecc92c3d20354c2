-- Removes a quarantined event after the subscriber has processed it.
-- p_args: {name, holder, event_id}.
-- Returns: {kept: false if the caller does not hold the lease any more}
create or replace function tasker.finish_delivery_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  delete from tasker.event_deliveries d using tasker.event_subscribers s
  where s.name = p_args->>'name' and s.holder = (p_args->>'holder')::uuid
    and d.subscriber = s.name and d.event_uuid = (p_args->>'event_id')::uuid;
  return jsonb_build_object('kept', found);
end
$$;

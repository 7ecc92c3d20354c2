-- Retries events that were given up, from the first attempt on, and waiting ones at once.
-- p_args: {name, events: [ids] or null: all that were given up}.
-- Returns: {events: count}
create or replace function tasker.redeliver_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_events int;
begin
  update tasker.event_deliveries d set attempts = 0, due_at = tasker.now(), updated_at = tasker.now()
  where d.subscriber = p_args->>'name'
    and case when jsonb_typeof(p_args->'events') = 'array' then p_args->'events' ? d.event_uuid::text else d.due_at is null end;
  get diagnostics v_events = row_count;
  return jsonb_build_object('events', v_events);
end
$$;

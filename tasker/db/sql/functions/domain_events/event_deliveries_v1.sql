-- Quarantined events, which wait for a retry or were given up, the latest first.
-- p_args: {name or null: of all subscribers, given_up: null, or a boolean to select by, limit}.
-- Returns: {deliveries: [{subscriber, event_id, event_name, attempts, due_at or null: given up, error, updated_at}]}
create or replace function tasker.event_deliveries_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('deliveries', coalesce(jsonb_agg(jsonb_build_object('subscriber', q.subscriber,
    'event_id', q.event_uuid, 'event_name', q.event->>'event_name', 'attempts', q.attempts, 'due_at', q.due_at,
    'error', q.error, 'updated_at', q.updated_at) order by q.updated_at desc), '[]'))
  from (select d.* from tasker.event_deliveries d
    where (p_args->>'name' is null or d.subscriber = p_args->>'name')
      and ((p_args->>'given_up')::boolean is null or (d.due_at is null) = (p_args->>'given_up')::boolean)
    order by d.updated_at desc limit (p_args->>'limit')::int) q
$$;

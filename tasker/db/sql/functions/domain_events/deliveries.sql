-- The deliveries that a subscriber is to retry now, the longest due first; none for a caller without its
-- lease, or while the subscriber is stopped.
-- p_args: {name, holder, limit}.
-- Returns: {deliveries: [{event, attempts}], next_ms: time until the next one is due, null: none waits}
create or replace function tasker.due_deliveries_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'deliveries', coalesce((select jsonb_agg(jsonb_build_object('event', q.event, 'attempts', q.attempts)
          order by q.due_at)
      from (select d.* from tasker.event_deliveries d where d.subscriber = s.name and d.due_at <= tasker.now()
        order by d.due_at limit (p_args->>'limit')::int) q), '[]'),
    'next_ms', (select greatest(0, ceil(extract(epoch from min(d.due_at) - tasker.now()) * 1000))::bigint
      from tasker.event_deliveries d where d.subscriber = s.name and d.due_at is not null))
  from tasker.event_subscribers s
  where s.name = p_args->>'name' and s.holder = (p_args->>'holder')::uuid and s.stopped is null
  union all select '{"deliveries": [], "next_ms": null}' limit 1
$$;

-- Removes a quarantined event after the subscriber has processed it.
-- Locks: delivery.
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

-- Quarantined events, which wait for a retry or were given up, the latest first.
-- p_args: {name or null: of all subscribers, given_up: null, or a boolean to select by, limit}.
-- Returns: {deliveries: [{subscriber, event_id, event_name, attempts, due_at or null: given up, error,
--   updated_at}]}
create or replace function tasker.event_deliveries_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('deliveries', coalesce(jsonb_agg(jsonb_build_object('subscriber', q.subscriber,
    'event_id', q.event_uuid, 'event_name', q.event->>'event_name', 'attempts', q.attempts,
    'due_at', q.due_at, 'error', q.error, 'updated_at', q.updated_at) order by q.updated_at desc), '[]'))
  from (select d.* from tasker.event_deliveries d
    where (p_args->>'name' is null or d.subscriber = p_args->>'name')
      and ((p_args->>'given_up')::boolean is null or (d.due_at is null) = (p_args->>'given_up')::boolean)
    order by d.updated_at desc limit (p_args->>'limit')::int) q
$$;

-- Retries events that were given up, from the first attempt on, and waiting ones at once.
-- Locks: delivery.
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
    and case when jsonb_typeof(p_args->'events') = 'array' then p_args->'events' ? d.event_uuid::text
      else d.due_at is null end;
  get diagnostics v_events = row_count;
  return jsonb_build_object('events', v_events);
end
$$;

-- The deliveries that a subscriber is to retry now, the longest due first; none for a caller without its lease, or
-- while the subscriber is stopped.
-- p_args: {name, holder, limit}.
-- Returns: {deliveries: [{event, attempts}], next_ms: time until the next one is due, null: none waits}
create or replace function tasker.due_deliveries_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'deliveries', coalesce((select jsonb_agg(jsonb_build_object('event', q.event, 'attempts', q.attempts) order by q.due_at)
      from (select d.* from tasker.event_deliveries d where d.subscriber = s.name and d.due_at <= tasker.now()
        order by d.due_at limit (p_args->>'limit')::int) q), '[]'),
    'next_ms', (select greatest(0, ceil(extract(epoch from min(d.due_at) - tasker.now()) * 1000))::bigint
      from tasker.event_deliveries d where d.subscriber = s.name and d.due_at is not null))
  from tasker.event_subscribers s where s.name = p_args->>'name' and s.holder = (p_args->>'holder')::uuid and s.stopped is null
  union all select '{"deliveries": [], "next_ms": null}' limit 1
$$;

-- Takes or renews the lease of a subscriber, so that one holder at a time reads in its name. With `from_now`
-- a new subscriber begins behind the events written before the last `ago_ms`, else at the first retained
-- event.
-- Locks: events without a position, subscriber.
-- p_args: {name, holder, lease_ms, from_now, ago_ms}.
-- Returns: {position}, or {held: milliseconds for which another holder has the lease}; for a stopped
--   subscriber one second.
create or replace function tasker.subscribe_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_holder constant uuid := (p_args->>'holder')::uuid;
  s tasker.event_subscribers;
begin
  perform tasker.place_events(true);
  if not exists (select from tasker.event_subscribers where name = p_args->>'name') then
    insert into tasker.event_subscribers (name, position, updated_at)
    select p_args->>'name', case when (p_args->>'from_now')::boolean then coalesce(
      -- uses the index domain_events_by_time
      (select min(q.position) - 1 from (select p.position from tasker.domain_events e
        join tasker.event_positions p on p.event_id = e.event_id
        where e.created_at > v_now - tasker.ms((p_args->>'ago_ms')::bigint) offset 0) q),
      (select max(p.position) from tasker.event_positions p), 0) else 0 end, v_now
    on conflict (name) do nothing;
  end if;
  select * into s from tasker.event_subscribers where name = p_args->>'name' for update;
  if s.stopped is not null then
    return '{"held": 1000}';
  end if;
  if s.holder is distinct from v_holder and s.lease_until > v_now then
    return jsonb_build_object('held', ceil(extract(epoch from s.lease_until - v_now) * 1000));
  end if;
  update tasker.event_subscribers set holder = v_holder,
    lease_until = v_now + tasker.ms((p_args->>'lease_ms')::bigint),
    updated_at = v_now where name = s.name;
  return jsonb_build_object('position', s.position);
end
$$;

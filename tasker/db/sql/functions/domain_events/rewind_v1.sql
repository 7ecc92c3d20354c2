-- Moves a subscriber back to `position`, or to the first event since `since`, so that it reads again events
-- that it has processed. The current holder loses the lease, and the next one begins there. Never moves
-- forward.
-- Locks: events without a position, subscriber.
-- p_args: {name, position or since}.
-- Returns: {from: previous position, to, events: number to be read again}, or {}
create or replace function tasker.rewind_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_from bigint;
  v_to bigint;
begin
  perform tasker.place_events(true);
  select s.position into v_from from tasker.event_subscribers s where s.name = p_args->>'name' for update;
  if not found then
    return '{}';
  end if;
  v_to := least(v_from, coalesce((p_args->>'position')::bigint, (select min(p.position) - 1
    from tasker.domain_events e join tasker.event_positions p on p.event_id = e.event_id
    where e.created_at >= (p_args->>'since')::timestamptz), v_from));
  update tasker.event_subscribers s set position = v_to, holder = null, lease_until = '-infinity',
    updated_at = tasker.now()
  where s.name = p_args->>'name';
  return jsonb_build_object('from', v_from, 'to', v_to,
    'events', (select count(*) from tasker.event_positions p
    where p.position > v_to and p.position <= v_from));
end
$$;

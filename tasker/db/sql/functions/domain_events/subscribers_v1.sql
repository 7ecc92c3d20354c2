-- The subscribers with their positions. `behind` is the number of events to read (counted by positions, some
-- of which it may skip; at most 100,000), `missed` is true if unread events were pruned, `active` if a holder
-- has the lease; `waiting` and `given_up` are numbers of quarantined events.
-- p_args: {}.
-- Returns: {subscribers: [{name, position, behind, missed, active, updated_at, stopped, waiting, given_up}]}
create or replace function tasker.subscribers_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'subscribers', coalesce(jsonb_agg(jsonb_build_object('name', s.name, 'position', s.position,
    'behind', (select count(*)
      from (select from tasker.event_positions p where p.position > s.position limit 100000) q),
    'missed', s.position < (select min(p.position) - 1 from tasker.event_positions p),
    'active', s.lease_until > tasker.now(), 'updated_at', s.updated_at, 'stopped', s.stopped,
    'waiting', d.waiting, 'given_up', d.given_up) order by s.name), '[]'))
  from tasker.event_subscribers s
  cross join lateral (select count(x.due_at) as waiting, count(*) - count(x.due_at) as given_up
    from tasker.event_deliveries x where x.subscriber = s.name) d
$$;

-- Stops a subscriber, so that its holder loses the lease and no process gets it; or (null) lets it start
-- again. One that does not exist yet begins with the events to come.
-- Locks: events without a position, subscriber.
-- p_args: {name, stopped: {by, reason} or null}.
-- Returns: {changed: false if it was in that state already}
create or replace function tasker.stop_subscriber_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_stopped constant jsonb := nullif(p_args->'stopped', 'null') || jsonb_build_object('at', tasker.now());
begin
  if v_stopped is null then
    update tasker.event_subscribers s set stopped = null, updated_at = tasker.now()
    where s.name = p_args->>'name' and s.stopped is not null;
  else
    perform tasker.place_events(true);
    insert into tasker.event_subscribers as s (name, position, updated_at, stopped)
    values (p_args->>'name', coalesce((select max(p.position) from tasker.event_positions p), 0),
      tasker.now(), v_stopped)
    on conflict (name) do update set stopped = excluded.stopped, updated_at = excluded.updated_at
    where s.stopped is null;
  end if;
  return jsonb_build_object('changed', found);
end
$$;

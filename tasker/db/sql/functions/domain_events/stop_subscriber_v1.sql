-- Stops a subscriber, so that its holder loses the lease and no process gets it; or (null) lets it start again. One
-- that does not exist yet begins with the events to come.
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
    values (p_args->>'name', coalesce((select max(p.position) from tasker.event_positions p), 0), tasker.now(), v_stopped)
    on conflict (name) do update set stopped = excluded.stopped, updated_at = excluded.updated_at where s.stopped is null;
  end if;
  return jsonb_build_object('changed', found);
end
$$;

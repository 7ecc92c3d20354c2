-- Deletes the oldest events older than `older_ms`, even those that a subscriber has not read: subscribers_v1
-- reports `missed` for it, and a subscriber that is gone retains nothing forever. Also deletes deliveries
-- last tried before that time.
-- Locks: events (skips), deliveries (skips).
-- p_args: {older_ms, limit}.
-- Returns: {events: count, over: true if there are no more}
create or replace function tasker.prune_events_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_before constant timestamptz := tasker.now() - tasker.ms((p_args->>'older_ms')::bigint);
  v_events int;
begin
  with gone as (
    delete from tasker.domain_events e where e.event_id in (select o.event_id from tasker.domain_events o
      where o.created_at < v_before
      order by o.created_at limit (p_args->>'limit')::int for update skip locked)
    returning e.event_id
  ), placed as (
    delete from tasker.event_positions p where p.event_id in (select g.event_id from gone g)
  ), unplaced as (
    delete from tasker.unplaced_events u where u.event_id in (select g.event_id from gone g)
  )
  select count(*) into v_events from gone;
  if v_events > 0 then
    delete from tasker.domain_events_pruned p where p.before < v_before;
    insert into tasker.domain_events_pruned (before) values (v_before);
  end if;
  delete from tasker.event_deliveries d
  where (d.subscriber, d.event_uuid) in (select o.subscriber, o.event_uuid
    from tasker.event_deliveries o where o.updated_at < v_before order by o.updated_at
    limit (p_args->>'limit')::int for update skip locked);
  return jsonb_build_object('events', v_events, 'over', v_events < (p_args->>'limit')::int);
end
$$;

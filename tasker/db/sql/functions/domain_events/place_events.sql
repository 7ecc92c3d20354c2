-- Assigns positions to committed events in the order in which they were written, one process at a time. The
-- events of a task are written under its lock, so the visible ones are always the first ones of the task, in
-- order. Positions become visible together with all smaller ones: a reader up to a position has missed none
-- before it. Returns the number of events placed: with p_all all of them, else a bounded number.
-- Locks: events without a position (advisory, without waiting).
create or replace function tasker.place_events(p_all boolean default false) returns int
language plpgsql as $$
declare
  v_slice constant int := 10000;
  v_placed int;
  v_sum int := 0;
begin
  if not exists (select from tasker.unplaced_events)
     or not pg_try_advisory_xact_lock(hashtextextended('tasker.domain_event_positions', 0)) then
    return 0;
  end if;
  loop
    with taken as (
      delete from tasker.unplaced_events u
      where u.event_id in (select x.event_id from tasker.unplaced_events x order by x.event_id limit v_slice)
      returning u.event_id
    ), placed as (
      insert into tasker.event_positions (position, event_id, namespace_id, name)
      select nextval('tasker.domain_event_positions'), q.event_id, q.namespace_id, q.name from (
        select e.event_id, e.namespace_id, e.name
        from taken t join tasker.domain_events e on e.event_id = t.event_id order by t.event_id offset 0) q
    )
    select count(*) into v_placed from taken;
    v_sum := v_sum + v_placed;
    exit when v_placed < v_slice or not p_all;
  end loop;
  return v_sum;
end
$$;

-- Assigns positions to some of the committed events, so that readers find them assigned; called by the sweep.
-- p_args: {}.
-- Returns: {over: true if none is left}
create or replace function tasker.place_events_v1(p_args jsonb) returns jsonb
language sql
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('over', tasker.place_events() = 0)
$$;

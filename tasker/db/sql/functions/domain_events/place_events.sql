-- Gives committed events their position, in the order in which they were written, one process at a time. What is seen of a
-- task is the beginning of its events, since they are written under its lock: so their order is kept. Positions become
-- visible together with all smaller ones: whoever has read up to one has missed none before it.
create or replace function tasker.place_events() returns void
language plpgsql as $$
begin
  if exists (select from tasker.domain_events e where e.position is null and e.withheld is null)
     and pg_try_advisory_xact_lock(hashtextextended('tasker.domain_event_positions', 0)) then
    update tasker.domain_events e set position = q.position from (
      select w.event_id, nextval('tasker.domain_event_positions') as position from (
        select u.event_id from tasker.domain_events u
        where u.position is null and u.withheld is null order by u.event_id limit 10000) w
      offset 0) q
    where e.event_id = q.event_id;
  end if;
end
$$;

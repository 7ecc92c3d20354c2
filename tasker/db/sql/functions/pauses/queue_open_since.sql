-- The time since which messages of an orchestration queue are taken: infinity while it is paused, the end of its last
-- pause, null if there never was one.
create or replace function tasker.queue_open_since(p_queue text) returns timestamptz
language sql stable as $$
  select case when exists (select from tasker.pauses p where p.queue = p_queue) then 'infinity'
    else (select max(l.created_at) from tasker.pause_log l where l.target = p_queue and l.action = 'resume') end
$$;

-- The number of steps that a namespace may still enqueue before further ready steps are backlogged (rule 17).
create or replace function tasker.window_size_left(p_namespace int, p_window int) returns int
language plpgsql stable as $$
declare
  v_room int;
begin
  select least(p_window, greatest(0, p_window - coalesce(sum(enqueued), 0)))::int into v_room
  from tasker.enqueue_counters where namespace_id = p_namespace;
  return v_room;
end
$$;

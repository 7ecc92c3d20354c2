-- The room for steps that become ready while others are backlogged: half of the window, so that the queue drains to the
-- level at which backlogged steps are released by rank, whatever running and new tasks add meanwhile (rule 17).
create or replace function tasker.window_room(p_namespace int, p_window int) returns int
language plpgsql stable as $$
begin
  if exists (select from tasker.ready_backlog b where b.namespace_id = p_namespace and not b.paused and b.unserved is null) then
    return tasker.window_size_left(p_namespace, p_window / 2);
  end if;
  return tasker.window_size_left(p_namespace, p_window);
end
$$;

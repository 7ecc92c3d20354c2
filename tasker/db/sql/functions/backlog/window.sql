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

-- The room for steps that become ready while others are backlogged: half of the window, so that the queue
-- drains to the level at which backlogged steps are released by rank, whatever running and new tasks add
-- meanwhile (rule 17).
create or replace function tasker.window_room(p_namespace int, p_window int) returns int
language plpgsql stable as $$
begin
  if exists (select from tasker.ready_backlog b
    where b.namespace_id = p_namespace and not b.paused and b.unserved is null) then
    return tasker.window_size_left(p_namespace, p_window / 2);
  end if;
  return tasker.window_size_left(p_namespace, p_window);
end
$$;

-- Adds to the counters of namespaces: enqueued steps, and steps that ever left the queue. Always the last
-- statement of a transaction, and on a shard that no other transaction has locked (tasker.free_shard), so no
-- writer ever waits for another.
-- Locks: counters of a namespace (advisory, without waiting).
create or replace function tasker.count_enqueued(p_namespaces int[], p_deltas int[]) returns void
language plpgsql as $$
begin
  insert into tasker.enqueue_counters as c (namespace_id, shard, enqueued, taken)
  select n, tasker.free_shard(n), sum(d), -sum(least(d, 0))
  from unnest(p_namespaces, p_deltas) as x (n, d)
  group by n having bool_or(d <> 0)
  on conflict (namespace_id, shard) do update set enqueued = c.enqueued + excluded.enqueued,
    taken = c.taken + excluded.taken;
end
$$;

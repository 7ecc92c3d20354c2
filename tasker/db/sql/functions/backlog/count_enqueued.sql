-- Adds to the counters of namespaces: enqueued steps, and steps that ever left the queue. Always the last statement of
-- a transaction, and on a shard that no other transaction has locked (tasker.free_shard), so no writer ever waits for
-- another.
create or replace function tasker.count_enqueued(p_namespaces int[], p_deltas int[]) returns void
language plpgsql as $$
begin
  insert into tasker.enqueue_counters as c (namespace_id, shard, enqueued, taken)
  select n, tasker.free_shard(n), sum(d), -sum(least(d, 0))
  from unnest(p_namespaces, p_deltas) as x (n, d)
  group by n having bool_or(d <> 0)
  on conflict (namespace_id, shard) do update set enqueued = c.enqueued + excluded.enqueued, taken = c.taken + excluded.taken;
end
$$;

-- A shard of the namespace's counters that no open transaction holds; it is this transaction's own until its end. The
-- session's usual one unless it is taken: the transaction of a program that submits may stay open for as long as it
-- likes, and nobody may wait for it. Locks: one advisory lock (namespace, shard), never waited for.
create or replace function tasker.free_shard(p_namespace int) returns int
language plpgsql as $$
declare
  v_shard int := pg_backend_pid() % 16;
begin
  while not pg_try_advisory_xact_lock(p_namespace, v_shard) loop
    v_shard := v_shard + 1;   -- beyond 16 too: as many shards as there were transactions at the same time
  end loop;
  return v_shard;
end
$$;

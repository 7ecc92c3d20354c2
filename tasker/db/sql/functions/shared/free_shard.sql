-- A shard of the namespace's counters that no open transaction has locked; this transaction has it until it
-- ends. Tries the usual shard of the session first: a client may keep the transaction of its submission open
-- for any time, and no writer may wait for that.
-- Locks: counters of a namespace (advisory, without waiting).
create or replace function tasker.free_shard(p_namespace int) returns int
language plpgsql as $$
declare
  v_shard int := pg_backend_pid() % 16;
begin
  while not pg_try_advisory_xact_lock(p_namespace, v_shard) loop
    v_shard := v_shard + 1;   -- may exceed 16: there are as many shards as there were concurrent transactions
  end loop;
  return v_shard;
end
$$;

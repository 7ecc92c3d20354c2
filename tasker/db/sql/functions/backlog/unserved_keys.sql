-- As tasker.unserved_by_all_workers, for a caller that sets these steps aside: no worker starts to serve the namespaces before
-- the caller commits, so no worker misses steps that were set aside while it started. Returns nothing for namespaces
-- that a worker starts to serve right now.
-- Locks: an advisory lock (namespace, -1), without waiting; starting workers share it among themselves
--   (tasker.serve_worker).
create or replace function tasker.unserved_keys(p_namespaces int[]) returns text[]
language plpgsql as $$
declare
  v_locked int[] := '{}';
  v_namespace int;
begin
  if cardinality(tasker.unserved_by_all_workers(p_namespaces)) = 0 then
    return '{}';
  end if;
  foreach v_namespace in array p_namespaces loop
    if pg_try_advisory_xact_lock(v_namespace, -1) then
      v_locked := v_locked || v_namespace;
    end if;
  end loop;
  return tasker.unserved_by_all_workers(v_locked);   -- a later statement: a worker may have started meanwhile
end
$$;

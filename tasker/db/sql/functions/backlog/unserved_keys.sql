-- As tasker.refused_by_all, for whoever sets these steps aside: until the caller's commit nobody comes to work in the
-- namespaces, so nobody misses what is set aside because he was not there. Namespaces to which somebody comes just now have
-- none. Locks: an advisory lock (namespace, -1), never waited for; tasker.serve_worker shares it with others who come.
create or replace function tasker.unserved_keys(p_namespaces int[]) returns text[]
language plpgsql as $$
declare
  v_locked int[] := '{}';
  v_namespace int;
begin
  if cardinality(tasker.refused_by_all(p_namespaces)) = 0 then
    return '{}';
  end if;
  foreach v_namespace in array p_namespaces loop
    if pg_try_advisory_xact_lock(v_namespace, -1) then
      v_locked := v_locked || v_namespace;
    end if;
  end loop;
  return tasker.refused_by_all(v_locked);   -- in a later statement: somebody may have come meanwhile
end
$$;

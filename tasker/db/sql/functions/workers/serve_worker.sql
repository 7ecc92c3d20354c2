-- Sets the namespaces and handlers that a registered worker serves. Its earlier refusals are cleared, and
-- steps that were set aside because no other worker had the handler may be tried again.
-- Locks: worker, unserved steps of its namespaces (advisory, shared). It waits until no transaction sets
--   steps of these namespaces aside without knowing of this worker (tasker.unserved_keys).
-- Returns: {namespaces: {name: id}}.
create or replace function tasker.serve_worker(p_worker uuid, p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_served constant jsonb := (select coalesce(jsonb_object_agg(n, tasker.namespace_id(n)), '{}')
    from jsonb_array_elements_text(p_args->'namespaces') n);
  v_namespaces constant int[] := array(select n.value::int from jsonb_each_text(v_served) n order by 1);
  v_namespace int;
begin
  update tasker.workers set unserved = '{}', unreadable = '{}',
    namespaces = array(select jsonb_array_elements_text(p_args->'namespaces'))
  where worker_uuid = p_worker;
  insert into tasker.worker_callables (worker_uuid, callables, lacking)
  values (p_worker, array(select jsonb_array_elements_text(coalesce(p_args->'callables', '[]'))),
    array(select jsonb_array_elements_text(coalesce(p_args->'lacking', '[]'))))
  on conflict (worker_uuid) do update set callables = excluded.callables, lacking = excluded.lacking;
  foreach v_namespace in array v_namespaces loop
    perform pg_advisory_xact_lock_shared(v_namespace, -1);
  end loop;
  perform tasker.probe_unserved(v_namespaces);
  return jsonb_build_object('namespaces', v_served);
end
$$;

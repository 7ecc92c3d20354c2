-- Sets what a registered worker serves. What it could not resolve before it may resolve now.
-- Answer: {namespaces: {name: id}}.
create or replace function tasker.serve_worker(p_worker uuid, p_args jsonb) returns jsonb
language plpgsql as $$
begin
  update tasker.workers set unserved = '{}',
    namespaces = array(select jsonb_array_elements_text(p_args->'namespaces'))
  where worker_uuid = p_worker;
  insert into tasker.worker_callables (worker_uuid, callables)
  values (p_worker, array(select jsonb_array_elements_text(coalesce(p_args->'callables', '[]'))))
  on conflict (worker_uuid) do update set callables = excluded.callables;
  return jsonb_build_object('namespaces', (select coalesce(jsonb_object_agg(n, tasker.namespace_id(n)), '{}')
    from jsonb_array_elements_text(p_args->'namespaces') n));
end
$$;

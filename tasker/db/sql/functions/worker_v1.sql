-- A worker's life: `start` registers an incarnation, `serve` changes what it serves, `beat` renews its lease and says which of the held tokens are no
-- longer valid, `sleep`/`wake` set the mark that senders read, `stop` ends it. The lease is this one row.
-- p_args: {action, worker, lease_ms, host, pid, namespaces: [name...], concurrency, held: [[step, token]...]}
-- Answer: {namespaces: {name: id}} for start and serve, {lost: [step...], known} for beat.
create or replace function tasker.worker_v1(p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_now constant timestamptz := tasker.now();
  v_worker constant uuid := (p_args->>'worker')::uuid;
  v_lease constant timestamptz := v_now + (p_args->>'lease_ms')::bigint * interval '1 millisecond';
  v_lost jsonb;
begin
  case p_args->>'action'
  when 'start' then
    insert into tasker.workers (worker_uuid, host, pid, namespaces, concurrency, lease_until, started_at)
    values (v_worker, p_args->>'host', (p_args->>'pid')::int, array(select jsonb_array_elements_text(p_args->'namespaces')),
      (p_args->>'concurrency')::int, v_lease, v_now);
    return jsonb_build_object('namespaces', (select coalesce(jsonb_object_agg(n, tasker.namespace_id(n)), '{}')
      from jsonb_array_elements_text(p_args->'namespaces') n));
  when 'serve' then
    update tasker.workers set namespaces = array(select jsonb_array_elements_text(p_args->'namespaces'))
    where worker_uuid = v_worker;
    return jsonb_build_object('namespaces', (select coalesce(jsonb_object_agg(n, tasker.namespace_id(n)), '{}')
      from jsonb_array_elements_text(p_args->'namespaces') n));
  when 'beat' then
    update tasker.workers set lease_until = v_lease where worker_uuid = v_worker and stopped_at is null;
    if not found then
      return jsonb_build_object('known', false);
    end if;
    select jsonb_agg(h->>0) into v_lost
    from jsonb_array_elements(p_args->'held') h
    left join tasker.workflow_steps s on s.workflow_step_uuid = (h->>0)::uuid
    where s.claim_token is distinct from (h->>1)::bigint or s.state <> 'in_progress';
    return jsonb_strip_nulls(jsonb_build_object('known', true, 'lost', v_lost));
  when 'sleep' then
    update tasker.workers set asleep = true where worker_uuid = v_worker;
  when 'wake' then
    update tasker.workers set asleep = false where worker_uuid = v_worker;
  when 'stop' then
    update tasker.workers set stopped_at = v_now, lease_until = v_now, asleep = false where worker_uuid = v_worker;
  end case;
  return '{}';
end
$$;

-- Stores an event for steps that wait for it now or later, until it expires. It takes no lock that a task
-- needs. After its commit the sender matches the event (unmatched_v1); with `announce` the commit notifies
-- the timekeeper, which then does it.
-- Locks: two senders of one `dedupe_id` wait for each other's transaction.
-- p_args: {namespace, name, key, payload, exclusive, dedupe_id, keep_ms, by, announce}
-- Returns: {event: uuid, duplicate: boolean}; {missing: true} if there is no such namespace.
create or replace function tasker.send_event_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_namespace constant int := (select n.namespace_id from tasker.task_namespaces n
    where n.name = p_args->>'namespace');
  v_event uuid;
begin
  perform tasker.require_read_committed();
  if v_namespace is null then
    return '{"missing": true}';
  end if;
  insert into tasker.incoming_events (event_uuid, namespace_id, name, key, payload, bytes, exclusive,
    dedupe_id, sent_by, sent_at, expires_at)
  values (tasker.uuid_v7(), v_namespace, p_args->>'name', coalesce(p_args->>'key', ''),
    p_args->'payload', pg_column_size(p_args->'payload'), coalesce((p_args->>'exclusive')::boolean, false),
    p_args->>'dedupe_id', p_args->>'by', v_now, v_now + tasker.ms((p_args->>'keep_ms')::numeric))
  on conflict (namespace_id, name, dedupe_id) where dedupe_id is not null do nothing
  returning event_uuid into v_event;
  if v_event is null then
    return jsonb_build_object('duplicate', true, 'event', (select e.event_uuid from tasker.incoming_events e
      where e.namespace_id = v_namespace and e.name = p_args->>'name'
        and e.dedupe_id = p_args->>'dedupe_id'));
  end if;
  if (p_args->>'announce')::boolean then
    perform pg_notify('tasker_timers', '0');   -- delivered by the commit
  end if;
  return jsonb_build_object('event', v_event, 'duplicate', false);
end
$$;

-- Stores that a subscriber has processed all events up to `position`, and renews its lease. Only the holder
-- of the lease may call it. With `leave` the lease ends. The position is stored for a stopped subscriber too.
-- Locks: subscriber.
-- p_args: {name, holder, position, lease_ms, leave}.
-- Returns: {kept: false if another holder has the lease by now, or the subscriber was stopped}
create or replace function tasker.acknowledge_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_goes_on boolean;
begin
  update tasker.event_subscribers s
  set position = greatest(s.position, coalesce((p_args->>'position')::bigint, 0)),
    holder = case when not (p_args->>'leave')::boolean then s.holder end, updated_at = tasker.now(),
    lease_until = case when (p_args->>'leave')::boolean then '-infinity'
      else tasker.now() + tasker.ms((p_args->>'lease_ms')::bigint) end
  where s.name = p_args->>'name' and s.holder = (p_args->>'holder')::uuid
  returning s.stopped is null or (p_args->>'leave')::boolean into v_goes_on;
  return jsonb_build_object('kept', coalesce(v_goes_on, false));
end
$$;

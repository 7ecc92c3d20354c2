-- Deletes one slice of the incoming events that have expired and that no open wait has collected.
-- Locks: events (skips).
-- p_args: {limit}
-- Returns: {deleted: number}
create or replace function tasker.prune_incoming_events_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_deleted int;
begin
  perform tasker.require_read_committed();
  delete from tasker.incoming_events e where e.event_uuid = any (array(
    select x.event_uuid from tasker.incoming_events x where x.expires_at <= tasker.now()
      and not exists (select from tasker.wait_events c join tasker.step_waits w
        on w.workflow_step_uuid = c.workflow_step_uuid and w.token = c.token and w.ended_at is null
        where c.event_uuid = x.event_uuid and c.problem is null)
    order by x.expires_at limit (p_args->>'limit')::int for update skip locked));
  get diagnostics v_deleted = row_count;
  return jsonb_build_object('deleted', v_deleted);
end
$$;

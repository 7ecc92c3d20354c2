-- Stores a checkpoint of a running step and extends its deadline; the step stays in progress. The history of
-- positions is appended here, so a repeated save never loses it. Only the last twenty positions are kept,
-- enough to show the position and the speed, because each save rewrites the row and each claim sends it. Only
-- the worker with the current token may save.
-- Locks: step, checkpoint.
-- p_args: {worker, step, token, cursor, items_processed, accumulated_results, timeout_ms, grace_ms, events
--   (published by the handler so far, stored with the position; absent if there are none)}.
-- Returns: {checkpoint} or {lost: true}.
create or replace function tasker.checkpoint_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_kept constant int := 20;
  v_now constant timestamptz := tasker.now();
  v_timeout_ms constant bigint not null := tasker.clamped_ms((p_args->>'timeout_ms')::numeric);
  v_grace_ms constant bigint not null := tasker.clamped_ms((p_args->>'grace_ms')::numeric);
  v_step constant uuid := (p_args->>'step')::uuid;
  v_stamp constant text := to_char(v_now at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
  v_checkpoint jsonb;
begin
  update tasker.workflow_steps set updated_at = v_now,
    deadline_at = tasker.deadline(v_now, v_timeout_ms, v_grace_ms)
  where workflow_step_uuid = v_step and state = 'in_progress' and claim_token = (p_args->>'token')::bigint
    and worker_uuid = (p_args->>'worker')::uuid;
  if not found then
    return jsonb_build_object('lost', true);
  end if;
  v_checkpoint := jsonb_build_object('cursor', p_args->'cursor', 'items_processed', p_args->'items_processed',
    'timestamp', v_stamp, 'accumulated_results', p_args->'accumulated_results',
    'history', jsonb_build_array(jsonb_build_object('cursor', p_args->'cursor', 'timestamp', v_stamp)))
    || case when p_args ? 'events' then jsonb_build_object('events', p_args->'events') else '{}' end;
  insert into tasker.step_checkpoints as c (workflow_step_uuid, checkpoint, bytes, updated_at)
  values (v_step, v_checkpoint, pg_column_size(v_checkpoint), v_now)
  on conflict (workflow_step_uuid) do update set updated_at = v_now,
    bytes = excluded.bytes + coalesce(pg_column_size(c.checkpoint->'history'), 0)
      + coalesce(pg_column_size(c.checkpoint->'again'), 0),
    checkpoint = excluded.checkpoint || jsonb_build_object('history', case
      when jsonb_array_length(c.checkpoint->'history') >= v_kept then (c.checkpoint->'history') - 0
      else coalesce(c.checkpoint->'history', '[]') end || (excluded.checkpoint->'history'))
      || case when c.checkpoint ? 'again' then jsonb_build_object('again', c.checkpoint->'again')
        else '{}' end   -- state of a handler that goes on
  returning c.checkpoint into v_checkpoint;
  return jsonb_build_object('checkpoint', v_checkpoint);
end
$$;

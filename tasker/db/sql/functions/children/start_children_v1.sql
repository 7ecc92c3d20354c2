-- Starts the next children of a fan-out: creates their tasks with their links, in one transaction with the
-- fan-out's counters. A fan-out that another process has locked, that is not open any more, or whose next
-- item is another one is left as it is.
-- Locks: fan-out (skips), then as submit_v1. Nobody who has the fan-out waits for a task that exists.
-- p_args: as submit_v1, and {step, token, items: [{i: index, id: task, or e: error of an item that cannot be
--   started}]}, the tasks of these.
-- Returns: as submit_v1, and {moved: true} if nothing was written.
create or replace function tasker.start_children_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_step constant uuid := (p_args->>'step')::uuid;
  v_token constant bigint := (p_args->>'token')::bigint;
  v_count constant int := jsonb_array_length(p_args->'items');
  v_fan_out tasker.fan_outs;
  v_answer jsonb := '{"created": []}';
  v_started int;
begin
  perform tasker.require_read_committed();
  select * into v_fan_out from tasker.fan_outs f
  where f.workflow_step_uuid = v_step and f.token = v_token for no key update skip locked;
  if v_fan_out.workflow_step_uuid is null or v_fan_out.state <> 'o'
      or v_fan_out.started <> (p_args#>>'{items,0,i}')::int
      or v_fan_out.running + v_count > v_fan_out.max_parallel
      or v_fan_out.started + v_count > v_fan_out.total then
    return '{"moved": true, "created": []}';
  end if;
  if jsonb_array_length(p_args->'tasks') > 0 then
    v_answer := tasker.submit_v1((p_args - '{step,token,items}'::text[])
      || jsonb_build_object('announce', true, 'gates', 128, 'template', v_fan_out.template_id));
  end if;
  with given as (
    select g.i, case when v_answer->'created' ? g.id::text then g.id end as child, coalesce(g.e,
      case when v_answer->'running' ? g.id::text then jsonb_build_object('error_type', 'unique_key_taken',
        'message', format('the task %s runs under the same unique key', v_answer->'running'->g.id::text->>0))
      else '{"error_type": "not_created", "message": "a task of the same identity exists"}' end) as error
    from jsonb_to_recordset(p_args->'items') as g (i int, id uuid, e jsonb)
  ), started as (
    update tasker.fan_out_items i set task_uuid = g.child, input = null,
      state = case when g.child is null then 'f' else 'r' end::"char",
      error = case when g.child is null then g.error end
    from given g where i.workflow_step_uuid = v_step and i.token = v_token and i.index = g.i
      -- else the whole list is read for each slice
      and i.index >= v_fan_out.started and i.index < v_fan_out.started + v_count
    returning g.child
  )
  select count(s.child) into v_started from started s;
  update tasker.fan_outs f set started = f.started + v_count, running = f.running + v_started,
    failed = f.failed + v_count - v_started
  where f.workflow_step_uuid = v_step and f.token = v_token;
  if v_started < v_count then
    perform tasker.stop_failed_fan_out(v_step, v_token, v_now);
  end if;
  return v_answer;
end
$$;

-- Puts off the start of children of a fan-out.
-- Locks: fan-out (skips).
-- p_args: {step, token, ms}
-- Returns: {}
create or replace function tasker.defer_fan_out_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  perform tasker.require_read_committed();
  update tasker.fan_outs f set look_at = tasker.now() + tasker.ms((p_args->>'ms')::numeric)
  where (f.workflow_step_uuid, f.token) in (select x.workflow_step_uuid, x.token from tasker.fan_outs x
    where x.workflow_step_uuid = (p_args->>'step')::uuid and x.token = (p_args->>'token')::bigint
    for no key update skip locked);
  return '{}';
end
$$;

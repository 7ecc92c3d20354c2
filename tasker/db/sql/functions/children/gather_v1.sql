-- Counts ends of children, and ends the step once all have ended, or too many failed and none runs any more.
-- Any number of processes may do so: what another one has locked is left to it, and to the next look. An end
-- is counted if and only if its row is deleted. A child that failed and was repaired counts as succeeded.
-- Locks: task of the step (skips), fan-out (skips), then as advance_v1.
-- p_args: as advance_v1 without items, and {step, token, ends: [{id, o: output, b: its bytes, e: error}]:
--   without an error the child has succeeded}
-- Returns: as advance_v1, and busy: true if another process is at it, unplanned: the failure that the caller
--   has to plan, as items of advance_v1
create or replace function tasker.gather_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_step constant uuid := (p_args->>'step')::uuid;
  v_token constant bigint := (p_args->>'token')::bigint;
  v_item jsonb;
  v_answer jsonb;
  f tasker.fan_outs;
begin
  perform tasker.require_read_committed();
  perform from tasker.tasks t where t.task_uuid = tasker.step_uuid(v_step, 0) for no key update skip locked;
  if not found and exists (select from tasker.tasks t where t.task_uuid = tasker.step_uuid(v_step, 0)) then
    return '{"busy": true}';
  end if;
  select * into f from tasker.fan_outs x
  where x.workflow_step_uuid = v_step and x.token = v_token for no key update skip locked;
  if f.workflow_step_uuid is null and exists (select from tasker.fan_outs x
      where x.workflow_step_uuid = v_step and x.token = v_token) then
    return '{"busy": true}';
  end if;
  if f.workflow_step_uuid is null or f.state = 'c' then   -- nobody waits for these
    delete from tasker.child_ends e where e.parent_step = v_step and e.token = v_token;
    return '{}';
  end if;

  -- From each end to its rows (ctid: under the lock of the fan-out nobody else changes it). Read by step and
  -- token, all items of the list would be compared with all ends of a slice.
  with found as materialized (
    select g.*, x.place from jsonb_to_recordset(p_args->'ends') as g (id bigint, o jsonb, b int, e jsonb)
    cross join lateral (select e.ctid as place from tasker.child_ends e where e.end_id = g.id offset 0) x
  ), gone as (
    delete from tasker.child_ends e using found g
    where e.ctid = g.place and e.parent_step = v_step and e.token = v_token
    returning e.end_id, e.index, g.o, g.b, g.e
  ), last as (   -- of two ends of one child the later one counts
    select distinct on (g.index) g.index, g.o, g.b, g.e,
      case when g.e is null then 'o' else 'f' end::"char" as state
    from gone g order by g.index, g.end_id desc
  ), counted as materialized (
    select l.*, i.state as before, i.place from last l
    cross join lateral (select x.state, x.ctid as place from tasker.fan_out_items x
      where x.workflow_step_uuid = v_step and x.token = v_token and x.index = l.index offset 0) i
    where i.state = 'r' or i.state = 'f' and l.state = 'o'
  ), changed as (
    update tasker.fan_out_items i set state = c.state, output = c.o, error = c.e
    from counted c where i.ctid = c.place
  )
  update tasker.fan_outs x set running = x.running - c.ended, succeeded = x.succeeded + c.succeeded,
    failed = x.failed + c.failed, output_bytes = x.output_bytes + c.bytes
  from (select count(*) filter (where c.before = 'r') as ended,
      count(*) filter (where c.state = 'o') as succeeded,
      count(*) filter (where c.state = 'f') - count(*) filter (where c.before = 'f') as failed,
      coalesce(sum(c.b) filter (where c.state = 'o'), 0) as bytes from counted c) c
  where x.workflow_step_uuid = v_step and x.token = v_token;
  perform tasker.stop_failed_fan_out(v_step, v_token, v_now);

  select * into f from tasker.fan_outs x where x.workflow_step_uuid = v_step and x.token = v_token;
  if f.running > 0 or f.state = 'o' and f.started < f.total then
    return '{}';
  end if;
  v_item := tasker.result_of_children(f);
  v_answer := tasker.advance_v1(p_args - '{step,token,ends}'::text[]
    || jsonb_build_object('events', true, 'grants', false, 'items', jsonb_build_array(v_item)));
  if v_answer->'verdicts'->>v_step::text = 'replan' then
    return v_answer || jsonb_build_object('unplanned', jsonb_build_array(v_item));
  end if;
  return v_answer;
end
$$;

-- The change that ends a step whose children have ended: its result, or its failure.
create or replace function tasker.result_of_children(f tasker.fan_outs) returns jsonb
language plpgsql stable as $$
declare
  v_most_bytes constant int := 1048576;   -- of all outputs in one result
  v_change constant jsonb := jsonb_build_object('s', f.workflow_step_uuid, 't', f.task_uuid, 'k', f.token);
  v_failed constant jsonb := (select coalesce(jsonb_agg(i.index order by i.index), '[]')
    from tasker.fan_out_items i
    where i.workflow_step_uuid = f.workflow_step_uuid and i.token = f.token and i.state = 'f');
  v_type text;
  v_message text;
  v_attempt int;
  v_fingerprint text;
  v_first tasker.fan_out_items;
begin
  if f.failed > f.tolerated or f.state = 's' then
    -- not one that was cancelled because others had failed
    select i.* into v_first from tasker.fan_out_items i
    where i.workflow_step_uuid = f.workflow_step_uuid and i.token = f.token and i.state = 'f'
    order by i.error->>'cancel_reason' is not distinct from 'parent_ended', i.index limit 1;
    v_type := case when f.is_list then 'too_many_children_failed' else 'child_task_failed' end;
    v_message := case when f.is_list then format('%s of %s child tasks failed, %s tolerated; the first: ',
        f.failed, f.total, f.tolerated) else '' end
      || case when v_first.task_uuid is null then format('child %s was not started', v_first.index)
        else format('child task %s ended in %s', v_first.task_uuid,
          coalesce(v_first.error->>'state', 'error')) end
      || coalesce(': ' || nullif(concat_ws(': ', 'step ' || (v_first.error->>'step'),
        v_first.error->>'message'), ''), '');
  elsif f.collects and f.output_bytes > v_most_bytes then
    v_type := 'result_too_large';
    v_message := format('the outputs of %s child tasks have %s bytes together, at most %s fit into a result; '
      'write `collect: none`, and read them in pages with context.children(''%s''), or let `output` choose '
      'less', f.succeeded, f.output_bytes, v_most_bytes,
      (select s.name from tasker.workflow_steps s where s.workflow_step_uuid = f.workflow_step_uuid));
  end if;
  if v_type is not null then
    select s.attempts, left(md5(v_type || ' ' || s.template_id || ':' || s.ordinal), 16)
    into v_attempt, v_fingerprint
    from tasker.workflow_steps s where s.workflow_step_uuid = f.workflow_step_uuid;
    return v_change || jsonb_build_object('kind', 'fail', 'n', '{"wait": "failed"}'::jsonb,
      'e', jsonb_build_object('error_type', v_type, 'message', v_message, 'retryable', false,
        'attempt', v_attempt, 'fingerprint', v_fingerprint));
  end if;
  return v_change || jsonb_build_object('kind', 'ok', 'n', '{"wait": "task"}'::jsonb, 'r', case
    when not f.is_list then (select jsonb_build_object('task_uuid', i.task_uuid, 'output', i.output)
      from tasker.fan_out_items i where i.workflow_step_uuid = f.workflow_step_uuid and i.token = f.token)
    else jsonb_build_object('total', f.total, 'succeeded', f.succeeded, 'failed', v_failed)
      || case when f.collects then jsonb_build_object('results', (
        select coalesce(jsonb_agg(coalesce(i.output, 'null') order by i.index), '[]')
        from tasker.fan_out_items i
        where i.workflow_step_uuid = f.workflow_step_uuid and i.token = f.token)) else '{}' end end);
end
$$;

-- Creates a task that reuses another one: its steps with their results, except those that run `again` and
-- those that are `dropped`, because a step that runs again decides about them anew. The caller planned this
-- on version `gv` of the graph (lifecycle/rerun.py). The other task does not change.
-- Locks: task, then as advance_v1. None of the steps of the other task moves meanwhile.
-- p_args: {task, gv, draft: {id, identity, context, correlation, initiator, reason ...: as an item of
--   submit_v1}, again: [name...], dropped: [name...], n: the note of the first transition} and the fields by
--   which a caller of advance_v1 describes itself.
-- Returns: as advance_v1, and {created: id, steps, reused}; or {missing: true}, {replan: true}.
create or replace function tasker.rerun_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_nestloop to off
set jit to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_draft constant jsonb := p_args->'draft';
  v_id constant uuid := (v_draft->>'id')::uuid;
  v_path constant text := tasker.path_code('pending')
    || tasker.task_path('pending', 'waiting_for_dependencies');
  v_task tasker.tasks;
  v_total int;
  v_reused int;
  v_ready jsonb;
begin
  perform tasker.require_read_committed();
  select * into v_task from tasker.tasks t where t.task_uuid = (p_args->>'task')::uuid for no key update;
  if v_task.task_uuid is null then
    return jsonb_build_object('missing', true);
  end if;
  if v_task.graph_version <> (p_args->>'gv')::int then
    return jsonb_build_object('replan', true);
  end if;

  insert into tasker.task_details (task_uuid, identity_hash, correlation_id, parent_correlation_id, context,
    context_bytes, initiator, source_system, reason, tags, requested_at, callback_url, deadline_at)
  select v_id, v_draft->>'identity', v_id, d.correlation_id, v_draft->'context',
    pg_column_size(v_draft->'context'), v_draft->>'initiator', v_draft->>'source_system',
    -- as much time
    v_draft->>'reason', d.tags, v_now, d.callback_url,
    v_now + (d.deadline_at - greatest(d.requested_at, v_task.run_at))
  from tasker.task_details d where d.task_uuid = v_task.task_uuid;

  with steps as materialized (
    select s.*, (left(v_id::text, 30) || right(s.workflow_step_uuid::text, 6))::uuid as id,
      a.name is not null as again
    from tasker.workflow_steps s
    left join jsonb_array_elements_text(p_args->'again') as a (name) on a.name = s.name
    where s.task_uuid = v_task.task_uuid
      and not exists (select from jsonb_array_elements_text(p_args->'dropped') as d (name)
        where d.name = s.name)
  ), waiting as (
    select e.to_step_uuid as step, count(*)::int as unmet
    from tasker.workflow_step_edges e join steps f on f.workflow_step_uuid = e.from_step_uuid
    where e.task_uuid = v_task.task_uuid and f.again group by e.to_step_uuid
  ), created as (
    insert into tasker.workflow_steps (workflow_step_uuid, task_uuid, namespace_id, template_id, ordinal,
      name, state, unmet, max_attempts, retryable, sort_key, created_at, updated_at)
    select s.id, v_id, s.namespace_id, s.template_id, s.ordinal, s.name,
      case when s.again then 'pending' else s.state end,
      coalesce(w.unmet, 0), s.max_attempts, s.retryable, case when s.again then 1 else 2 end, v_now, v_now
    from steps s left join waiting w on w.step = s.workflow_step_uuid
    order by s.id
    returning workflow_step_uuid, state, unmet
  ), logged as (
    insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token,
      metadata, created_at)
    select s.id, tasker.path_code('pending') || tasker.path_code(s.state), 2, 0, 0,
      jsonb_build_object('reused_from', v_task.task_uuid), v_now
    from steps s where not s.again
  ), results as (
    insert into tasker.step_results (task_uuid, ordinal, workflow_step_uuid, name, result, metadata,
      bytes, created_at)
    select v_id, r.ordinal, s.id, r.name, r.result, r.metadata, r.bytes, r.created_at
    from steps s join tasker.step_results r on r.workflow_step_uuid = s.workflow_step_uuid
    where r.task_uuid = v_task.task_uuid and not s.again
  ), inputs as (
    insert into tasker.step_inputs (workflow_step_uuid, inputs, bytes)
    select s.id, i.inputs, i.bytes from steps s
    join tasker.step_inputs i on i.workflow_step_uuid = s.workflow_step_uuid
  ), edges as (
    insert into tasker.dynamic_edges (task_uuid, from_step_uuid, to_step_uuid, name)
    select v_id, f.id, t.id, e.name
    from tasker.dynamic_edges e join steps f on f.workflow_step_uuid = e.from_step_uuid
    join steps t on t.workflow_step_uuid = e.to_step_uuid
    where e.task_uuid = v_task.task_uuid
  )
  select count(*), count(*) filter (where c.state <> 'pending'),
    jsonb_agg(jsonb_build_object('s', c.workflow_step_uuid, 't', v_id,
      'kind', 'unhold')) filter (where c.state = 'pending' and c.unmet = 0)
  into v_total, v_reused, v_ready from created c;

  insert into tasker.tasks (task_uuid, named_task_uuid, namespace_id, template_id, state, priority, sort_key,
    graph_version, next_seq, total, done, gates, tenant, created_at, updated_at)
  values (v_id, v_task.named_task_uuid, v_task.namespace_id, v_task.template_id, tasker.path_end(v_path),
    v_task.priority,
    1 + tasker.path_length(v_path), v_task.graph_version, v_task.next_seq, v_total, v_reused,
    v_task.gates & ~128,   -- no step waits for its end
    v_task.tenant, v_now, v_now);
  insert into tasker.task_moves (task_uuid, path, sort_key, metadata, created_at)
  values (v_id, v_path, 1 + tasker.path_length(v_path), p_args->'n', v_now);

  if v_task.gates & 1024 <> 0 then   -- handlers below the steps that are reused read the outputs
    perform tasker.copy_fan_outs(v_task.task_uuid, v_id);
  end if;
  if v_task.gates & 256 <> 0 then
    perform tasker.write_deadlines(array[v_id], v_now);
  end if;

  return jsonb_build_object('created', v_id, 'steps', v_total, 'reused', v_reused)
    || case when v_ready is null   -- a rerun from a step of `finally`: all others are done
      then coalesce(tasker.evaluate_tasks(array[row(v_id, 0, 0, 0, 0, 0, 0, 0, 0)::tasker.task_change],
        p_args - '{task,gv,draft,again,dropped,n}'::text[], v_now), '{}')
      else tasker.advance_v1(p_args - '{task,gv,draft,again,dropped,n}'::text[]
        || jsonb_build_object('items', v_ready)) end;
end
$$;

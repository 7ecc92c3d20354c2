-- Creates the steps chosen by a completed step, with their edges, and counts their unmet parents itself (the
-- plan is not trusted for that). Called by advance_v1 with the task locked and before the parent's children
-- are counted down, so the parent counts as unmet here and is met there. Returns the number of new steps that
-- wait for nothing: all their parents were done before (a convergence need not depend on the decision that
-- makes it possible).
-- Locks: task. The caller has locked it.
-- p_steps: [{"name", "ordinal", "parents": [name...], "inputs"?, "joins"?: [name...]: pending steps that wait
-- for it, too}] in topological order.
-- Linear in steps and edges: the named steps are fetched once and joined by hash, whatever the caller's
-- settings; of the task only the parents are read, since a large task may contain many decisions. With less
-- memory the joins use files, not another plan: 90,000 steps take 5.6 s with a work_mem of 64 MB, 6.1 s with
-- 4 MB; 100,000 take 14 s with 64 kB. The limit for larger expansions is statement_timeout, because the
-- expansion is one statement.
create or replace function tasker.expand_step(p_task uuid, p_steps jsonb, p_now timestamptz) returns int
language plpgsql
set enable_hashjoin to on
set enable_nestloop to off
as $$
declare
  v_seq int;
  v_count int := jsonb_array_length(p_steps);
  v_template int;
  v_namespace int;
  v_waiting int;
begin
  update tasker.tasks set next_seq = next_seq + v_count, total = total + v_count,
    graph_version = graph_version + 1
  where task_uuid = p_task returning next_seq - v_count, template_id, namespace_id into v_seq,
    v_template, v_namespace;
  if v_seq + v_count > 16777216 then   -- a step's number has 24 bits of its identifier
    raise exception 'a task has at most 16777215 steps' using errcode = 'program_limit_exceeded';
  end if;

  with given as materialized (
    select tasker.step_uuid(p_task, v_seq + x.i::int - 1) as uuid, x.step->>'name' as name,
      x.step->'parents' as parents,
      (x.step->>'ordinal')::int as ordinal, x.step->'inputs' as inputs,
      coalesce((x.step->>'batch')::boolean, false) as batch
    from jsonb_array_elements(p_steps) with ordinality as x (step, i)
  ), named as materialized (
    select g.uuid, g.batch, p.name from given g
    cross join lateral jsonb_array_elements_text(g.parents) as p (name)
  ), parents as materialized (
    select s.name, s.uuid, s.ordinal, s.unmet
    from (select n.name from named n except select g.name from given g) n
    cross join lateral (   -- offset: a look-up for each name, never the whole task
      select s.name, s.workflow_step_uuid as uuid, s.ordinal,
        not tasker.step_satisfies(s.state, s.settled) as unmet
      from tasker.workflow_steps s where s.task_uuid = p_task and s.name = n.name offset 0) s
    union all
    select g.name, g.uuid, g.ordinal, true from given g
  ), kinds as materialized (
    select k.* from (select g.ordinal from given g union select p.ordinal from parents p) o
    cross join lateral (select ts.ordinal, ts.step_type, ts.max_attempts, ts.retryable
      from tasker.template_steps ts
      where ts.template_id = v_template and ts.ordinal = o.ordinal offset 0) k
  ), edges as (
    insert into tasker.dynamic_edges (task_uuid, from_step_uuid, to_step_uuid, name)
    select p_task, p.uuid, n.uuid, case when n.batch then 'batch_dependency'
      else tasker.edge_name(k.step_type) end
    from named n join parents p on p.name = n.name join kinds k on k.ordinal = p.ordinal
  ), waiting as (
    select n.uuid, count(*)::int as unmet from named n join parents p on p.name = n.name where p.unmet
    group by n.uuid
  ), inputs as (
    insert into tasker.step_inputs (workflow_step_uuid, inputs, bytes)
    select g.uuid, g.inputs, pg_column_size(g.inputs) from given g where jsonb_typeof(g.inputs) = 'object'
  ), created as (
    insert into tasker.workflow_steps (workflow_step_uuid, task_uuid, namespace_id, template_id,
      ordinal, name, state, unmet, max_attempts, retryable, created_at, updated_at)
    select g.uuid, p_task, v_namespace, v_template, g.ordinal, g.name, 'pending', coalesce(w.unmet, 0),
      k.max_attempts, k.retryable, p_now, p_now
    from given g join kinds k on k.ordinal = g.ordinal left join waiting w on w.uuid = g.uuid
    order by g.uuid
    returning unmet
  )
  select count(*) filter (where c.unmet > 0) into v_waiting from created c;

  if jsonb_path_exists(p_steps, '$[*].joins') then
    with joined as (
      insert into tasker.dynamic_edges (task_uuid, from_step_uuid, to_step_uuid)
      select p_task, tasker.step_uuid(p_task, v_seq + x.i::int - 1), s.uuid
      from jsonb_array_elements(p_steps) with ordinality as x (step, i)
      cross join lateral jsonb_array_elements_text(x.step->'joins') as n (name)
      cross join lateral (select s.workflow_step_uuid as uuid from tasker.workflow_steps s
        where s.task_uuid = p_task and s.name = n.name offset 0) s
      returning to_step_uuid
    )
    update tasker.workflow_steps s set unmet = s.unmet + j.added
    from (select j.to_step_uuid as uuid, count(*)::int as added from joined j group by 1) j
    where s.workflow_step_uuid = j.uuid;
  end if;
  return v_count - v_waiting;
end
$$;

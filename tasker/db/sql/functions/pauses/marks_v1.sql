-- Continues to mark backlogged steps after a pause of a template, a step or a task began or ended that covers
-- more than one slice (tasker.mark_held). The process that paused or resumed repeats the call until there is
-- no more; if it dies, the sweeps do (repair_v1). Steps of the target do not start in the meantime, because
-- every release checks the pauses. Skips a namespace that another transaction has locked.
-- Locks: namespace (skips), backlog.
-- p_args: {slice: number of backlogged steps}.
-- Returns: {freed: number of steps that wait for room now, more: true if there may be more}, {} if there was
--   nothing to do.
create or replace function tasker.marks_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_namespace tasker.task_namespaces;
  v_slice jsonb;
begin
  perform tasker.require_read_committed();
  select * into v_namespace from tasker.task_namespaces ns
  where ns.marks_after is not null
  order by ns.namespace_id limit 1 for no key update skip locked;
  if v_namespace.namespace_id is null then
    return '{}';
  end if;
  v_slice := tasker.mark_held(v_namespace.namespace_id, v_namespace.marks_after,
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    tasker.required(p_args, 'slice')::int);
  update tasker.task_namespaces ns set marks_after = (v_slice->>'last')::uuid
  where ns.namespace_id = v_namespace.namespace_id;
  if (v_slice->>'freed')::int > 0 then
    perform pg_notify('tasker_work', '@' || v_namespace.name);
  end if;
  return jsonb_build_object('freed', v_slice->'freed', 'more', v_slice ? 'last');
end
$$;

-- Updates the first slice of backlogged steps after a pause of a template, a step or a task (p_args.task)
-- began or ended; tasker.marks_v1 continues with the rest. The caller has locked the namespace.
-- Locks: backlog, namespace. The caller has locked the namespace.
-- Returns: {freed, more}.
create or replace function tasker.begin_marks(p_namespace int, p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_task constant uuid := (p_args->>'task')::uuid;
  v_slice constant jsonb := tasker.mark_held(p_namespace,
    coalesce(v_task, '00000000-0000-0000-0000-000000000000'),
    coalesce(tasker.step_uuid(v_task, 16777215), 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    tasker.required(p_args, 'slice')::int);
begin
  if v_slice ? 'last' then   -- if two passes overlap, the one behind does the work of both
    update tasker.task_namespaces ns set marks_after = least(ns.marks_after, (v_slice->>'last')::uuid)
    where ns.namespace_id = p_namespace;
  end if;
  if v_task is not null and tasker.starts_children(v_task) then   -- child tasks may be in any namespace
    update tasker.task_namespaces ns set marks_after = '00000000-0000-0000-0000-000000000000';
    return jsonb_build_object('freed', v_slice->'freed', 'more', true);
  end if;
  return jsonb_build_object('freed', v_slice->'freed', 'more', v_slice ? 'last');
end
$$;

-- Locks the namespace of a target that is paused or resumed; of a task that starts child tasks all of them,
-- in their order.
-- Locks: namespaces.
create or replace function tasker.lock_paused_namespaces(p_namespace int, p_task uuid) returns void
language plpgsql as $$
begin
  perform from tasker.task_namespaces ns
  where ns.namespace_id = p_namespace or p_task is not null and tasker.starts_children(p_task)
  order by ns.namespace_id for no key update;
end
$$;

-- True for a task with steps that start child tasks.
create or replace function tasker.starts_children(p_task uuid) returns boolean
language sql stable as $$
  select t.gates & 1024 <> 0 from tasker.tasks t where t.task_uuid = p_task
$$;

-- Compares the marks of one slice of a namespace's backlogged steps with the pauses, and corrects those that
-- differ. A step that loses its mark waits for room even if it was unserved before, because a worker for it
-- may have started meanwhile. The caller has locked the namespace.
-- Locks: backlog.
-- p_after, p_until: the steps behind the first, up to the second; p_slice: maximum number.
-- Returns: {freed: number of steps that lost their mark, last: step, if there may be more behind it}.
create or replace function tasker.mark_held(p_namespace int, p_after uuid, p_until uuid,
  p_slice int) returns jsonb
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_last uuid;
  v_count int;
  v_freed int;
begin
  with slice as materialized (
    select b.workflow_step_uuid, b.paused from tasker.ready_backlog b
    where b.namespace_id = p_namespace and b.workflow_step_uuid > p_after and b.workflow_step_uuid <= p_until
    order by b.workflow_step_uuid limit p_slice
  ), wrong as materialized (
    select b.workflow_step_uuid, x.paused from slice x
    join tasker.workflow_steps s on s.workflow_step_uuid = x.workflow_step_uuid
    join tasker.ready_backlog b on b.workflow_step_uuid = x.workflow_step_uuid
    where x.paused <> tasker.narrowly_paused(s.namespace_id, s.template_id, s.ordinal, s.task_uuid)
    order by b.workflow_step_uuid for no key update of b
  ), corrected as (
    update tasker.ready_backlog b set paused = not w.paused, ready_at = tasker.now(),
      unserved = case when not w.paused then b.unserved end
    from wrong w where b.workflow_step_uuid = w.workflow_step_uuid
    returning b.paused
  )
  select (select x.workflow_step_uuid from slice x order by x.workflow_step_uuid desc limit 1),
    (select count(*) from slice), (select count(*) from corrected c where not c.paused)
  into v_last, v_count, v_freed;
  return jsonb_build_object('freed', v_freed)
    || case when v_count = p_slice then jsonb_build_object('last', v_last) else '{}' end;
end
$$;

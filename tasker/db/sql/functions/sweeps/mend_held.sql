-- The part of tasker.repair_v1 that checks the backlog in slices: marks without a pause, and rows of steps
-- that are not ready. Rows of namespaces that another transaction has locked, or whose marks are still
-- changing, are checked in the next pass.
-- Locks: turn (skips), namespaces (skips), backlog, tasks (skips).
-- Returns: {repaired: {kind: n}, finished, waiters, slices: true if the pass has more}, with the kinds that
--   occurred.
create or replace function tasker.mend_held(p_args jsonb) returns jsonb
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_kind constant text := 'mend';
  v_slice constant int not null := (p_args->>'slice')::int;
  v_from uuid;
  v_steps uuid[];
  v_namespaces int[];
  v_marks int;
  v_ended jsonb := '{}';
  v_repaired jsonb := '{}';
begin
  if not exists (select from tasker.turns t where t.kind = v_kind) then
    insert into tasker.turns (kind, taken_at) values (v_kind, '-infinity') on conflict (kind) do nothing;
  end if;
  select coalesce(t.position, '00000000-0000-0000-0000-000000000000') into v_from from tasker.turns t
  where t.kind = v_kind for update skip locked;
  if not found then
    return '{"repaired": {}}';
  end if;
  if p_args ? 'begin' then
    v_from := '00000000-0000-0000-0000-000000000000';
  end if;
  v_steps := array(select b.workflow_step_uuid from tasker.ready_backlog b where b.workflow_step_uuid > v_from
    order by b.workflow_step_uuid limit v_slice);
  update tasker.turns t set position = v_steps[v_slice], taken_at = tasker.now()
  where t.kind = v_kind and t.position is distinct from v_steps[v_slice];

  if exists (select from tasker.ready_backlog b
      join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
      where b.workflow_step_uuid = any (v_steps) and b.paused
        and not tasker.narrowly_paused(s.namespace_id, s.template_id, s.ordinal, s.task_uuid)) then
    select array_agg(q.namespace_id) into v_namespaces from (
      select ns.namespace_id from tasker.task_namespaces ns
      where ns.marks_after is null and ns.namespace_id in (
        select b.namespace_id from tasker.ready_backlog b
        where b.workflow_step_uuid = any (v_steps) and b.paused)
      order by ns.namespace_id for no key update skip locked) q;
    with wrong as materialized (
      select b.workflow_step_uuid from tasker.ready_backlog b
      join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
      where b.workflow_step_uuid = any (v_steps) and b.namespace_id = any (v_namespaces) and b.paused
        and not tasker.narrowly_paused(s.namespace_id, s.template_id, s.ordinal, s.task_uuid)
      order by b.workflow_step_uuid for no key update of b
    )
    update tasker.ready_backlog b set paused = false, unserved = null from wrong w
    where b.workflow_step_uuid = w.workflow_step_uuid;
    get diagnostics v_marks = row_count;
    if v_marks > 0 then
      v_repaired := jsonb_build_object('paused_without_a_pause', v_marks);
      perform pg_notify('tasker_work', '@' || ns.name) from tasker.task_namespaces ns
      where ns.namespace_id = any (v_namespaces);
    end if;
  end if;

  if exists (select from tasker.ready_backlog b
      join tasker.task_namespaces n on n.namespace_id = b.namespace_id and n.fair_default is not null
      where b.workflow_step_uuid = any (v_steps) and b.flow is null) then
    perform tasker.give_flows(v_steps);
  end if;

  if exists (select from tasker.stale_backlog_rows(v_steps)) then
    v_ended := tasker.delete_backlog_rows(v_steps, p_args);
    v_repaired := v_repaired || jsonb_build_object('held_but_not_ready', v_ended->'dropped');
  end if;
  return v_ended - 'dropped' - 'settled' || jsonb_build_object('repaired', v_repaired)
    || case when v_steps[v_slice] is not null then '{"slices": true}'::jsonb else '{}' end;
end
$$;

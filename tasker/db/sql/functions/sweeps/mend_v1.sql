-- Repairs what no slice of open tasks shows, in namespaces where nobody has looked for `every_ms`: held steps that are
-- marked as paused though no pause holds them, held steps that are none (they would stand in the way of the others), and
-- counters of enqueued steps that differ from the rows. Counts what it repairs. Pauses of tasks that have ended go. Of what
-- nobody served one of each is tried again where somebody may have the handler by now: a lease that was over may go on, or
-- the one that was tried was cancelled.
-- Locks: namespaces and tasks in order, passing over those that others hold; then held steps ORDER BY
-- workflow_step_uuid; then a free shard of the counters.
-- p_args: {every_ms (60000), on_blocked}. Answer: {repaired: {kind: n}, finished: {task: state}, waiters}.
create or replace function tasker.mend_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_namespaces int[];
  v_repaired jsonb;
  v_marks int;
  v_ended jsonb := '{}';
begin
  perform tasker.require_read_committed();
  select array_agg(q.namespace_id) into v_namespaces from (
    select ns.namespace_id from tasker.task_namespaces ns
    where ns.mended_at <= v_now - tasker.ms(coalesce((p_args->>'every_ms')::numeric, 60000))
    order by ns.namespace_id for no key update skip locked) q;
  if v_namespaces is null then
    return '{}';
  end if;
  update tasker.task_namespaces ns set mended_at = v_now where ns.namespace_id = any (v_namespaces);

  -- of tasks that have ended: while anything is paused, all writes go the long way (tasker.advance_plain)
  delete from tasker.pauses p using tasker.tasks t
  where t.task_uuid = p.task_uuid and p.namespace_id = any (v_namespaces) and tasker.task_is_final(t.state);
  v_marks := tasker.unpause_held(v_namespaces);
  if v_marks > 0 then
    perform pg_notify('tasker_work', '@' || ns.name) from tasker.task_namespaces ns where ns.namespace_id = any (v_namespaces);
  end if;
  perform tasker.probe_unserved(v_namespaces);
  v_repaired := jsonb_build_object('paused_without_a_pause', v_marks,
    'enqueued_miscounted', tasker.recount_enqueued(v_namespaces));
  if exists (select from tasker.not_ready_but_held(v_namespaces)) then
    v_ended := tasker.drop_held(v_namespaces, p_args);
    v_repaired := v_repaired || jsonb_build_object('held_but_not_ready', v_ended->'dropped');
  end if;
  perform tasker.repaired_v1(v_repaired);
  return v_ended - 'dropped' - 'settled' || jsonb_build_object('repaired', v_repaired);
end
$$;

-- Repairs what no slice of open tasks shows. At each call, of one slice of the held steps, from where the one before ended:
-- steps that are marked as paused though no pause holds them, and rows that are none (they would stand in the way of the
-- others). In namespaces where nobody has looked for `every_ms`: counters of enqueued steps that differ from the rows. Counts
-- what it repairs. Marks that a pause has begun to change are changed on (tasker.marks_v1). Pauses of tasks that have ended go.
-- Of what nobody served one of each is tried again where somebody may have the handler by now: a lease that was over may go
-- on, or the one that was tried was cancelled.
-- Locks: namespaces and tasks in order, passing over those that others hold; then held steps ORDER BY
-- workflow_step_uuid; then a free shard of the counters.
-- p_args: {every_ms (60000), slice (1000), begin (true: the pass over the held steps begins anew), on_blocked}.
-- Answer: {repaired: {kind: n}, finished: {task: state}, waiters, more: true where marks are left to change, slices: true where
--   there are held steps behind this slice}.
create or replace function tasker.mend_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_namespaces int[];
  v_more constant boolean := (tasker.marks_v1('{}')->>'more')::boolean;
  v_answer jsonb;
begin
  perform tasker.require_read_committed();
  v_answer := tasker.mend_held(p_args);
  select array_agg(q.namespace_id) into v_namespaces from (
    select ns.namespace_id from tasker.task_namespaces ns
    where ns.mended_at <= v_now - tasker.ms(coalesce((p_args->>'every_ms')::numeric, 60000))
    order by ns.namespace_id for no key update skip locked) q;
  if v_namespaces is not null then
    update tasker.task_namespaces ns set mended_at = v_now where ns.namespace_id = any (v_namespaces);
    -- of tasks that have ended: while anything is paused, all writes go the long way (tasker.advance_plain)
    delete from tasker.pauses p using tasker.tasks t
    where t.task_uuid = p.task_uuid and p.namespace_id = any (v_namespaces) and tasker.task_is_final(t.state);
    perform tasker.probe_unserved(v_namespaces);
    v_answer := jsonb_set(v_answer, '{repaired,enqueued_miscounted}', to_jsonb(tasker.recount_enqueued(v_namespaces)));
  end if;
  if v_answer->'repaired' = '{}' then
    v_answer := v_answer - 'repaired';
  else
    perform tasker.repaired_v1(v_answer->'repaired');
  end if;
  return v_answer || jsonb_strip_nulls(jsonb_build_object('more', nullif(v_more, false)));
end
$$;

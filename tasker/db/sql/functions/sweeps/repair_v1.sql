-- Repairs faults that no slice of open tasks shows. Each call checks one slice of the backlog, starting where
-- the one before ended: steps that are marked as paused although no pause covers them, and rows of steps that
-- are not ready (they would be in the way of others); and one slice of limits (tasker.mend_limits). In
-- namespaces not checked for `every_ms`, it corrects counters of enqueued steps that differ from the rows,
-- deletes pauses of ended tasks, and retries one unserved step of each kind where a worker may have its
-- handler by now: an expired lease may have been renewed, or the step tried before was cancelled. It then
-- deletes submission buckets that are full, too.
-- Continues to change marks for a pause (tasker.marks_v1). Wakes workers of ordered namespaces whose steps
-- wait: the process that should have done so may have died after its commit. Counts its repairs.
-- Locks: as marks_v1, as mend_held, as mend_limits, namespaces (skips), pauses, backlog (skips), submission
--   buckets (skips), counters.
-- p_args: {every_ms, slice, begin (true: a new pass over the backlog begins), on_blocked}.
-- Returns: {repaired: {kind: n}, finished: {task: state}, waiters, more: true if marks are left to change,
--   slices: true if there are backlogged steps behind this slice}.
create or replace function tasker.repair_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_namespaces int[];
  v_more constant boolean := (tasker.marks_v1(p_args)->>'more')::boolean;
  v_answer jsonb;
  v_limits jsonb;
begin
  perform tasker.require_read_committed();
  v_answer := tasker.mend_held(p_args);
  v_limits := tasker.mend_limits(p_args);
  v_answer := v_answer || jsonb_build_object('repaired', (v_answer->'repaired') || (v_limits->'repaired'))
    || (v_limits - 'repaired');
  select array_agg(q.namespace_id) into v_namespaces from (
    select ns.namespace_id from tasker.task_namespaces ns
    where ns.mended_at <= v_now - tasker.ms(tasker.required(p_args, 'every_ms')::numeric)
    order by ns.namespace_id for no key update skip locked) q;
  if v_namespaces is not null then
    update tasker.task_namespaces ns set mended_at = v_now where ns.namespace_id = any (v_namespaces);
    -- Pauses of ended tasks: any pause makes all writes take the general path (tasker.advance_simple).
    delete from tasker.pauses p using tasker.tasks t
    where t.task_uuid = p.task_uuid and p.namespace_id = any (v_namespaces) and tasker.task_is_final(t.state);
    perform tasker.probe_unserved(v_namespaces);
    delete from tasker.submission_buckets b where b.ctid = any (array(
      -- as if it had never been used
      select x.ctid from tasker.submission_buckets x where x.full_at < v_now - interval '1 minute'
      limit 1000 for update skip locked));
    v_answer := jsonb_set(v_answer, '{repaired,enqueued_miscounted}',
      to_jsonb(tasker.recount_enqueued(v_namespaces)));
  end if;
  perform pg_notify('tasker_work', '@' || n.name) from tasker.task_namespaces n
  where n.ordered and exists (select from tasker.ready_backlog b where b.namespace_id = n.namespace_id
      and not b.paused and b.unserved is null)
    and exists (select from tasker.workers w where w.asleep and w.stopped_at is null
      and w.lease_until > tasker.now() and n.name = any (w.namespaces));
  if v_answer->'repaired' = '{}' then
    v_answer := v_answer - 'repaired';
  else
    perform tasker.record_repairs_v1(v_answer->'repaired');
  end if;
  return v_answer || jsonb_strip_nulls(jsonb_build_object('more', nullif(v_more, false)));
end
$$;

-- Adds to the counters of repairs.
-- p_args: {kind: n, ...}.
create or replace function tasker.record_repairs_v1(p_args jsonb) returns jsonb
language sql volatile
set search_path to pg_catalog, pg_temp
as $$
  insert into tasker.repairs as r (kind, repaired, last_at)
  select k, n::bigint, tasker.now() from jsonb_each_text(p_args) as x (k, n) where n::bigint > 0 order by k
  on conflict (kind) do update set repaired = r.repaired + excluded.repaired, last_at = excluded.last_at
  returning '{}'::jsonb
$$;

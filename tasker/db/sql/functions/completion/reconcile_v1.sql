-- After a lost connection: the steps claimed for this worker that it does not have, because their claim was
-- committed and the answer was lost. They were not started, so the caller releases them; no attempt is used.
-- A slice reads so many steps of the tasks under way, behind the last step of the slice before, which may be
-- in the middle of a wide task.
-- p_args: {worker, held: [[step, token]...], after: step uuid (from the first), steps: maximum number (all)}.
-- Returns: {items: [{s, t, k}...], last: step uuid; null at the end}.
create or replace function tasker.reconcile_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with slice as materialized (
    select (p_args->>'steps')::int as steps,
      coalesce(p_args->>'after', '00000000-0000-0000-0000-000000000000')::uuid as behind
  ), walked as materialized (
    select s.workflow_step_uuid, s.task_uuid, s.claim_token, s.state, s.worker_uuid
    from (   -- running steps belong to tasks under way; each has at least one step
      select t.task_uuid from tasker.tasks t where not t.complete and not t.waits
        and t.task_uuid >= (select tasker.step_uuid(c.behind, 0) from slice c)
      order by t.task_uuid limit (select c.steps + 1 from slice c)) t
    cross join lateral (
      select x.* from tasker.workflow_steps x
      where x.workflow_step_uuid > greatest((select c.behind from slice c), t.task_uuid)
        and x.workflow_step_uuid <= tasker.step_uuid(t.task_uuid, 16777215)
      order by x.workflow_step_uuid) s
    limit (select c.steps from slice c)
  )
  select jsonb_build_object(
    'items', (select coalesce(jsonb_agg(jsonb_build_object('s', w.workflow_step_uuid, 't', w.task_uuid,
            'k', w.claim_token)), '[]')
      from walked w where w.state = 'in_progress' and w.worker_uuid = (p_args->>'worker')::uuid
        and not exists (select from jsonb_array_elements(p_args->'held') h
                        where (h->>0)::uuid = w.workflow_step_uuid and (h->>1)::bigint = w.claim_token)),
    'last', (select w.workflow_step_uuid from walked w
      where (select count(*) from walked) = (select c.steps from slice c)
      order by w.workflow_step_uuid desc limit 1))
$$;

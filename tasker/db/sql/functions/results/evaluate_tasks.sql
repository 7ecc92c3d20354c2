-- One evaluation per task and write: new counters, new state along the shortest legal path, history (rule 10).
-- The tasks are locked. p_done ... p_held are the changes of the counters, p_started the steps that became ready.
-- Answers, for the tasks that ended with this write: {finished: {task: final state}, waiters: {task: who is to be told}};
-- null when none did.
create or replace function tasker.evaluate_tasks(p_tasks uuid[], p_done int[], p_failed int[], p_cancelled int[],
  p_active int[], p_retrying int[], p_held int[], p_started int[], p_on_blocked text, p_worker uuid, p_note jsonb,
  p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_finished jsonb;
  v_waiters jsonb;
begin
  with n as materialized (   -- materialized: the path is computed once per task
    select k.task_uuid, k.state, k.done, k.failed, k.cancelled, k.active, k.retrying, k.held,
      coalesce(tasker.task_path(k.state, tasker.task_target(k.state, k.started, k.total, k.done, k.failed + k.cancelled, k.active,
        k.retrying, k.held, p_on_blocked)), '') as path
    from (
      select t.task_uuid, t.state, t.total, t.done + d.done as done, t.failed + d.failed as failed,
        t.cancelled + d.cancelled as cancelled, t.active + d.active as active, t.retrying + d.retrying as retrying,
        t.held + d.held as held, d.started
      from unnest(p_tasks, p_done, p_failed, p_cancelled, p_active, p_retrying, p_held, p_started)
        as d (task_uuid, done, failed, cancelled, active, retrying, held, started)
      join tasker.tasks t on t.task_uuid = d.task_uuid) k
  ), moved as (
    update tasker.tasks t set
      done = n.done, failed = n.failed, cancelled = n.cancelled, active = n.active, retrying = n.retrying, held = n.held,
      state = case when n.path = '' then t.state else tasker.path_end(n.path) end,
      complete = tasker.task_is_final(tasker.path_end(coalesce(nullif(n.path, ''), t.state))),
      completed_at = case when n.path = '' then t.completed_at
        when tasker.task_is_final(tasker.path_end(n.path)) then p_now end,
      sort_key = t.sort_key + case n.path when '' then 0 else tasker.path_length(n.path) + 1 end,
      updated_at = p_now
    from n
    where t.task_uuid = n.task_uuid
    returning t.task_uuid, t.state, t.complete, t.waiter, t.sort_key, n.state as from_state, n.path
  ), logged as (
    insert into tasker.task_moves (task_uuid, path, sort_key, processor_uuid, metadata, created_at)
    select m.task_uuid, tasker.path_code(m.from_state || '>' || m.path), m.sort_key, p_worker, p_note, p_now from moved m where m.path <> ''
  )
  select jsonb_object_agg(m.task_uuid, m.state), jsonb_object_agg(m.task_uuid, m.waiter) filter (where m.waiter is not null)
  into v_finished, v_waiters from moved m where m.complete;
  return case when v_waiters is not null then jsonb_build_object('finished', v_finished, 'waiters', v_waiters)
    when v_finished is not null then jsonb_build_object('finished', v_finished) end;
end
$$;

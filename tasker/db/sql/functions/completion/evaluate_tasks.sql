-- The outcome of a complete task: `partial` if steps of it failed or were skipped, null if none is missing.
create or replace function tasker.outcome_of(p_task uuid) returns text
language sql stable as $$
  select case when exists (select from tasker.workflow_steps s
    where s.task_uuid = p_task and s.settled <> 'o') then 'partial' end
$$;

-- The target of a task that comes to rest: the steps of `finally` run before it ends, and in phase `x` it is
-- cancelled. `p_target` is that of its counters.
create or replace function tasker.target_at_rest(p_gates int, p_phase "char", p_target text) returns text
language sql immutable parallel safe as $$
  select case
    when p_gates & 4096 = 0 or p_target not in ('complete', 'error', 'blocked_by_failures') then p_target
    when p_phase is null then 'waiting_for_dependencies'
    when p_phase = 'x' then 'cancelled'
    else p_target
  end
$$;

-- One evaluation for each task and write: new counters, new state along the shortest legal path, history
-- (rule 10). The caller has locked the tasks. p_changes: the changes of the counters, with the number of
-- steps that became ready (`started`). Tasks that come to rest because of failures become dead letters in
-- the same transaction, unless `dead_letters` is false; those with steps of `finally` begin these
-- (begin_finally).
-- Locks: tasks. The caller has locked them.
-- p_args: on_blocked, worker, note, dead_letters, and what begin_finally needs.
-- Returns: for the tasks that ended with this write {finished: {task: final state}, at: time, waiters: {task:
--   waiter to notify}}, and what begin_finally returns; null if there is neither.
create or replace function tasker.evaluate_tasks(p_changes tasker.task_change[], p_args jsonb,
  p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_on_blocked constant text := coalesce(p_args->>'on_blocked', 'give_up');
  v_finished jsonb;
  v_waiters jsonb;
  v_troubled uuid[];
  v_from text[];
  v_told uuid[];    -- those whose end is an event
  v_dated uuid[];   -- with a deadline: those that ended, and those that continue
  v_resting uuid[];   -- with steps of `finally`, which begin
  v_begun jsonb;
begin
  with n as materialized (
    select k.*, coalesce(tasker.task_path(k.state, k.target), '') as path
    from (
      select c.*, tasker.task_target(c.state, c.started, c.total, c.done, c.failed + c.cancelled, c.active,
        c.retrying, c.held, v_on_blocked) as counted,
        tasker.target_at_rest(c.gates, c.phase, tasker.task_target(c.state, c.started, c.total, c.done,
          c.failed + c.cancelled, c.active, c.retrying, c.held, v_on_blocked)) as target
      from (
        select t.task_uuid, t.state, t.total, t.done + d.done as done, t.failed + d.failed as failed,
          t.cancelled + d.cancelled as cancelled, t.active + d.active as active,
          t.retrying + d.retrying as retrying, t.held + d.held as held, d.started,
          t.suspended + d.suspended as suspended, t.gates, t.phase
        from unnest(p_changes) d join tasker.tasks t on t.task_uuid = d.task_uuid offset 0) c
      offset 0) k   -- offset: later references use the column instead of a copy of its expression
  ), moved as (
    update tasker.tasks t set
      done = n.done, failed = n.failed, cancelled = n.cancelled, active = n.active, retrying = n.retrying,
      held = n.held, suspended = n.suspended, state = case n.path when '' then t.state else n.target end,
      complete = tasker.task_is_final(case n.path when '' then t.state else n.target end),
      outcome = case when n.target = 'complete' and t.gates & 16 <> 0 then tasker.outcome_of(t.task_uuid)
        else t.outcome end,
      completed_at = case when n.path = '' then t.completed_at
        when tasker.task_is_final(n.target) then p_now end,
      sort_key = t.sort_key + case n.path when '' then 0 else tasker.path_length(n.path) + 1 end,
      updated_at = p_now
    from n
    where t.task_uuid = n.task_uuid
    returning t.task_uuid, t.state, t.complete, t.waiter, t.sort_key, t.gates, n.state as from_state, n.path,
      n.target <> n.counted and n.phase is null as rests
  ), logged as (
    insert into tasker.task_moves (task_uuid, path, sort_key, processor_uuid, metadata, created_at)
    select m.task_uuid, tasker.path_code(m.from_state) || m.path, m.sort_key, (p_args->>'worker')::uuid,
      p_args->'note', p_now
    from moved m where m.path <> ''
  )
  select jsonb_object_agg(m.task_uuid, m.state) filter (where m.complete and m.path <> ''),
    jsonb_object_agg(m.task_uuid, m.waiter)
      filter (where m.complete and m.path <> '' and m.waiter is not null),
    array_agg(m.task_uuid) filter (where m.path <> '' and tasker.task_is_blocked(m.state)),
    array_agg(m.from_state) filter (where m.path <> '' and tasker.task_is_blocked(m.state)),
    array_agg(m.task_uuid) filter (where m.path <> '' and m.gates & 256 <> 0
      and (m.complete or tasker.task_is_final(m.from_state))),
    array_agg(m.task_uuid) filter (where m.path <> '' and m.complete and m.gates & 512 <> 0),
    array_agg(m.task_uuid) filter (where m.rests)
  into v_finished, v_waiters, v_troubled, v_from, v_dated, v_told, v_resting
  from moved m where m.complete or tasker.task_is_blocked(m.state) or m.gates & 256 <> 0 or m.rests;
  if v_dated is not null then
    perform tasker.write_deadlines(v_dated, p_now);
  end if;
  if v_told is not null then
    perform tasker.write_task_events(v_told, p_now);
  end if;
  if v_troubled is not null and coalesce((p_args->>'dead_letters')::boolean, true) then
    perform tasker.dlq_failed(v_troubled, v_from, p_now);
  end if;
  if v_resting is not null then
    v_begun := tasker.begin_finally(v_resting, 'f', p_args, p_now);
  end if;
  return nullif(coalesce(v_begun, '{}') || case when v_waiters is not null
      then jsonb_build_object('finished', v_finished, 'at', p_now, 'waiters', v_waiters)
    when v_finished is not null then jsonb_build_object('finished', v_finished, 'at', p_now)
    else '{}' end, '{}');
end
$$;

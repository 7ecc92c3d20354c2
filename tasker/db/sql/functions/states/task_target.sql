-- The state to which one evaluation leads a task, from its counters after the write (rule 10). `p_started` is
-- the number of steps that became ready in this write, `p_failed` that of steps that ended without satisfying
-- their dependents (error, cancelled). Mirrors tasker.engine.states.task; a test compares both.
create or replace function tasker.task_target(p_state text, p_started int, p_total int,
  p_done int, p_failed int, p_active int, p_retrying int, p_held int, p_on_blocked text) returns text
language sql immutable parallel safe as $$
  select case
    when p_done = p_total then 'complete'
    when p_active = 0 and p_retrying = 0 and p_held = 0 and p_started = 0 and p_failed > 0
      then case p_on_blocked when 'wait' then 'blocked_by_failures' else 'error' end
    when p_started > 0 then 'steps_in_process'
    when p_retrying > 0 and p_active = 0 and p_held = 0 and tasker.task_is_retrying(p_state)
      then 'waiting_for_retry'
    when p_state = 'waiting_for_retry' and p_retrying > 0 then 'waiting_for_retry'
    else 'waiting_for_dependencies'
  end
$$;

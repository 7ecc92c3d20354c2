-- The states a task passes through to reach `p_to`, without the state it is in; '' when it is there already, null when
-- the table of transitions has no way. From steps_in_process to itself goes through evaluation: that is what a result
-- that made further steps ready does. Mirrors tasker.lifecycle; a test compares both for every pair.
create or replace function tasker.task_path(p_from text, p_to text) returns text
language sql immutable parallel safe as $$
  select case
    when p_from = p_to and p_from <> 'steps_in_process' then ''
    when p_from in ('complete', 'cancelled', 'resolved_manually') then null
    when p_to = 'cancelled' then case when p_from <> 'error' then 'cancelled' end
    when p_to = 'resolved_manually' then case p_from when 'blocked_by_failures' then 'resolved_manually' end
    when p_to = 'steps_in_process' then case p_from
      when 'pending' then 'initializing>enqueuing_steps>steps_in_process'
      when 'initializing' then 'enqueuing_steps>steps_in_process'
      when 'enqueuing_steps' then 'steps_in_process'
      when 'evaluating_results' then 'enqueuing_steps>steps_in_process'
      when 'waiting_for_retry' then 'enqueuing_steps>steps_in_process'
      when 'error' then 'enqueuing_steps>steps_in_process'
      else 'evaluating_results>enqueuing_steps>steps_in_process' end
    when p_to = 'waiting_for_retry' then case p_from
      when 'pending' then 'initializing>enqueuing_steps>steps_in_process>waiting_for_retry'
      when 'initializing' then 'enqueuing_steps>steps_in_process>waiting_for_retry'
      when 'enqueuing_steps' then 'steps_in_process>waiting_for_retry'
      when 'steps_in_process' then 'waiting_for_retry' end
    when p_from = 'pending' and p_to in ('waiting_for_dependencies', 'complete') then 'initializing>' || p_to
    when p_from = 'initializing' and p_to in ('waiting_for_dependencies', 'complete') then p_to
    when p_from = 'blocked_by_failures' and p_to = 'error' then 'error'
    else case p_from
        when 'pending' then 'initializing>waiting_for_dependencies>evaluating_results>'
        when 'initializing' then 'waiting_for_dependencies>evaluating_results>'
        when 'enqueuing_steps' then 'steps_in_process>evaluating_results>'
        when 'waiting_for_retry' then 'enqueuing_steps>steps_in_process>evaluating_results>'
        when 'error' then 'enqueuing_steps>steps_in_process>evaluating_results>'
        when 'evaluating_results' then ''
        else 'evaluating_results>' end
      || case p_to
        when 'complete' then 'complete'
        when 'error' then 'blocked_by_failures>error'
        when 'blocked_by_failures' then 'blocked_by_failures'
        when 'waiting_for_dependencies' then 'waiting_for_dependencies' end
  end
$$;

-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The states a task passes through to reach `p_to`, without the state it is in; '' when it is there already, null when there
-- is no way. From steps_in_process to itself goes through evaluation: that is what a result does that made further steps ready.
create or replace function tasker.task_path(p_from text, p_to text) returns text
language sql immutable parallel safe as $$
  select case p_to
    when 'steps_in_process' then case
      when p_from = 'pending' then 'initializing>enqueuing_steps>steps_in_process'
      when p_from in ('error', 'evaluating_results', 'initializing', 'waiting_for_retry') then
        'enqueuing_steps>steps_in_process'
      when p_from = 'enqueuing_steps' then 'steps_in_process'
      when p_from in ('blocked_by_failures', 'steps_in_process', 'waiting_for_dependencies') then
        'evaluating_results>enqueuing_steps>steps_in_process' end
    when 'waiting_for_dependencies' then case
      when p_from = 'pending' then 'initializing>waiting_for_dependencies'
      when p_from in ('evaluating_results', 'initializing') then 'waiting_for_dependencies'
      when p_from = 'enqueuing_steps' then 'steps_in_process>evaluating_results>waiting_for_dependencies'
      when p_from in ('blocked_by_failures', 'steps_in_process') then 'evaluating_results>waiting_for_dependencies'
      when p_from = 'waiting_for_dependencies' then ''
      when p_from in ('error', 'waiting_for_retry') then
        'enqueuing_steps>steps_in_process>evaluating_results>waiting_for_dependencies' end
    when 'waiting_for_retry' then case
      when p_from = 'pending' then 'initializing>enqueuing_steps>steps_in_process>waiting_for_retry'
      when p_from in ('error', 'evaluating_results', 'initializing') then 'enqueuing_steps>steps_in_process>waiting_for_retry'
      when p_from = 'enqueuing_steps' then 'steps_in_process>waiting_for_retry'
      when p_from = 'steps_in_process' then 'waiting_for_retry'
      when p_from in ('blocked_by_failures', 'waiting_for_dependencies') then
        'evaluating_results>enqueuing_steps>steps_in_process>waiting_for_retry'
      when p_from = 'waiting_for_retry' then '' end
    when 'blocked_by_failures' then case
      when p_from = 'pending' then 'initializing>waiting_for_dependencies>evaluating_results>blocked_by_failures'
      when p_from = 'initializing' then 'waiting_for_dependencies>evaluating_results>blocked_by_failures'
      when p_from = 'enqueuing_steps' then 'steps_in_process>evaluating_results>blocked_by_failures'
      when p_from in ('steps_in_process', 'waiting_for_dependencies') then 'evaluating_results>blocked_by_failures'
      when p_from = 'evaluating_results' then 'blocked_by_failures'
      when p_from in ('error', 'waiting_for_retry') then
        'enqueuing_steps>steps_in_process>evaluating_results>blocked_by_failures'
      when p_from = 'blocked_by_failures' then '' end
    when 'complete' then case
      when p_from = 'pending' then 'initializing>complete'
      when p_from in ('evaluating_results', 'initializing') then 'complete'
      when p_from = 'enqueuing_steps' then 'steps_in_process>evaluating_results>complete'
      when p_from in ('blocked_by_failures', 'steps_in_process', 'waiting_for_dependencies') then 'evaluating_results>complete'
      when p_from in ('error', 'waiting_for_retry') then 'enqueuing_steps>steps_in_process>evaluating_results>complete'
      when p_from = 'complete' then '' end
    when 'error' then case
      when p_from = 'pending' then 'initializing>waiting_for_dependencies>evaluating_results>blocked_by_failures>error'
      when p_from = 'initializing' then 'waiting_for_dependencies>evaluating_results>blocked_by_failures>error'
      when p_from = 'enqueuing_steps' then 'steps_in_process>evaluating_results>blocked_by_failures>error'
      when p_from in ('steps_in_process', 'waiting_for_dependencies') then 'evaluating_results>blocked_by_failures>error'
      when p_from = 'evaluating_results' then 'blocked_by_failures>error'
      when p_from = 'waiting_for_retry' then 'enqueuing_steps>steps_in_process>evaluating_results>blocked_by_failures>error'
      when p_from = 'blocked_by_failures' then 'error'
      when p_from = 'error' then '' end
    when 'cancelled' then case
      when p_from in ('blocked_by_failures', 'enqueuing_steps', 'evaluating_results', 'initializing', 'pending',
        'steps_in_process', 'waiting_for_dependencies', 'waiting_for_retry') then 'cancelled'
      when p_from = 'cancelled' then '' end
    when 'resolved_manually' then case
      when p_from = 'blocked_by_failures' then 'resolved_manually'
      when p_from = 'resolved_manually' then '' end
  end
$$;

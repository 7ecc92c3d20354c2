-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The states a step passes through for one kind of change, beginning with the state it is in; null: not legal. A change that
-- makes the step ready ends in `pending`; `placed_path` says where it goes from there.
create or replace function tasker.step_path(p_from text, p_kind text) returns text
language sql immutable parallel safe as $$
  select case p_kind
    when 'ok' then case
      when p_from = 'in_progress' then 'in_progress>enqueued_for_orchestration>complete'
      when p_from = 'enqueued_for_orchestration' then 'enqueued_for_orchestration>complete' end
    when 'retry' then case
      when p_from = 'in_progress' then 'in_progress>enqueued_as_error_for_orchestration>waiting_for_retry'
      when p_from = 'enqueued_as_error_for_orchestration' then 'enqueued_as_error_for_orchestration>waiting_for_retry' end
    when 'fail' then case
      when p_from = 'in_progress' then 'in_progress>enqueued_as_error_for_orchestration>error'
      when p_from in ('enqueued', 'enqueued_as_error_for_orchestration', 'enqueued_for_orchestration', 'pending') then p_from
        || '>error' end
    when 'release' then case
      when p_from = 'in_progress' then 'in_progress>enqueued' end
    when 'defer' then case
      when p_from = 'in_progress' then 'in_progress>waiting_for_retry' end
    when 'promote' then case
      when p_from = 'waiting_for_retry' then 'waiting_for_retry>pending' end
    when 'unhold' then case
      when p_from = 'pending' then 'pending' end
    when 'hold' then case
      when p_from = 'enqueued' then 'enqueued>pending' end
    when 'reset' then case
      when p_from = 'error' then 'error>pending' end
    when 'resolve' then case
      when p_from in ('enqueued', 'enqueued_as_error_for_orchestration', 'enqueued_for_orchestration', 'error', 'in_progress',
        'pending', 'waiting_for_retry') then p_from || '>resolved_manually' end
    when 'complete' then case
      when p_from in ('enqueued', 'enqueued_as_error_for_orchestration', 'enqueued_for_orchestration', 'error', 'in_progress',
        'pending', 'waiting_for_retry') then p_from || '>complete' end
    when 'cancel' then case
      when p_from in ('enqueued', 'enqueued_as_error_for_orchestration', 'enqueued_for_orchestration', 'error', 'in_progress',
        'pending', 'waiting_for_retry') then p_from || '>cancelled' end
  end
$$;

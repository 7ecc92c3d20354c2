-- The states a step passes through for one kind of change, beginning with the state it is in; null: not legal.
-- A change that makes the step ready ends in `pending`; where it goes from there (enqueued, in_progress or held) is
-- decided by advance_v1. Mirrors tasker.lifecycle; a test compares both for every state and kind.
create or replace function tasker.step_path(p_from text, p_kind text) returns text
language sql immutable parallel safe as $$
  select case p_kind
    when 'ok' then case p_from
      when 'in_progress' then 'in_progress>enqueued_for_orchestration>complete'
      when 'enqueued_for_orchestration' then 'enqueued_for_orchestration>complete' end
    when 'retry' then case p_from
      when 'in_progress' then 'in_progress>enqueued_as_error_for_orchestration>waiting_for_retry'
      when 'enqueued_as_error_for_orchestration' then 'enqueued_as_error_for_orchestration>waiting_for_retry' end
    when 'fail' then case p_from
      when 'in_progress' then 'in_progress>enqueued_as_error_for_orchestration>error'
      when 'enqueued_as_error_for_orchestration' then 'enqueued_as_error_for_orchestration>error'
      when 'enqueued_for_orchestration' then 'enqueued_for_orchestration>error'
      when 'pending' then 'pending>error'
      when 'enqueued' then 'enqueued>error' end
    when 'release' then case p_from when 'in_progress' then 'in_progress>enqueued' end
    when 'defer' then case p_from when 'in_progress' then 'in_progress>waiting_for_retry' end
    when 'hold' then case p_from when 'enqueued' then 'enqueued>pending' end
    when 'promote' then case p_from when 'waiting_for_retry' then 'waiting_for_retry>pending' end
    when 'reset' then case p_from when 'error' then 'error>pending' end
    when 'unhold' then case p_from when 'pending' then 'pending' end
    when 'resolve' then case when p_from in ('pending', 'enqueued', 'in_progress', 'enqueued_for_orchestration',
        'enqueued_as_error_for_orchestration', 'waiting_for_retry', 'error') then p_from || '>resolved_manually' end
    when 'complete' then case when p_from in ('pending', 'enqueued', 'in_progress', 'enqueued_for_orchestration',
        'enqueued_as_error_for_orchestration', 'waiting_for_retry', 'error') then p_from || '>complete' end
    when 'cancel' then case when p_from in ('pending', 'enqueued', 'in_progress', 'enqueued_for_orchestration',
        'enqueued_as_error_for_orchestration', 'waiting_for_retry', 'error') then p_from || '>cancelled' end
  end
$$;

-- Two function names that only raise an error with the alternative: only the engine's own functions change
-- the state of a step or a task, because another write would leave no history and no actor.
create or replace function tasker.set_step_backoff_atomic(p_step_uuid uuid, p_backoff_seconds int)
returns boolean
language plpgsql stable as $$
begin
  raise exception 'tasker.set_step_backoff_atomic changes nothing: the failure of step % sets its delay',
    p_step_uuid
    using errcode = 'feature_not_supported',
    hint = 'A handler sets the delay with retry_after; `tasker task retry` tries again now.';
end
$$;

create or replace function tasker.finalize_task_completion(input_task_uuid uuid) returns boolean
language plpgsql stable as $$
begin
  raise exception 'tasker.finalize_task_completion changes nothing: the last result of task % ends it',
    input_task_uuid using errcode = 'feature_not_supported',
    hint = '`tasker task explain` says what it waits for; `tasker db check --repair` repairs lost work.';
end
$$;

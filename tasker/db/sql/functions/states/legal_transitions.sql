-- Which states may follow which, by kind of subject; `violations_v1` holds the history against it. Mirrors
-- tasker.lifecycle; a test compares both.
create or replace function tasker.legal_transitions() returns table (subject text, state text, followers text[])
language sql immutable parallel safe rows 16
as $$
  values
    ('step', 'pending', '{enqueued,in_progress,error,cancelled,resolved_manually,complete}'::text[]),
    ('step', 'enqueued', '{in_progress,pending,error,cancelled,resolved_manually,complete}'),
    ('step', 'in_progress', '{enqueued_for_orchestration,enqueued_as_error_for_orchestration,enqueued,waiting_for_retry,
      complete,error,cancelled,resolved_manually}'),
    ('step', 'enqueued_for_orchestration', '{complete,error,cancelled,resolved_manually}'),
    ('step', 'enqueued_as_error_for_orchestration', '{waiting_for_retry,error,cancelled,resolved_manually,complete}'),
    ('step', 'waiting_for_retry', '{pending,cancelled,resolved_manually,complete}'),
    ('step', 'error', '{pending,cancelled,resolved_manually,complete}'),
    ('task', 'pending', '{initializing,cancelled}'),
    ('task', 'initializing', '{enqueuing_steps,waiting_for_dependencies,complete,cancelled}'),
    ('task', 'enqueuing_steps', '{steps_in_process,error,cancelled}'),
    ('task', 'steps_in_process', '{evaluating_results,waiting_for_retry,cancelled}'),
    ('task', 'evaluating_results', '{enqueuing_steps,waiting_for_dependencies,blocked_by_failures,complete,cancelled}'),
    ('task', 'waiting_for_dependencies', '{evaluating_results,cancelled}'),
    ('task', 'waiting_for_retry', '{enqueuing_steps,cancelled}'),
    ('task', 'blocked_by_failures', '{evaluating_results,error,resolved_manually,cancelled}'),
    ('task', 'error', '{enqueuing_steps,pending}')
$$;

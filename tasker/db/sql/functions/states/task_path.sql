-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The states a task passes through to reach `p_to`, without the state it is in; '' when it is there already, null when there
-- is no way. From steps_in_process to itself goes through evaluation: that is what a result does that made further steps ready.
create or replace function tasker.task_path(p_from text, p_to text) returns text
language sql immutable parallel safe as $$
  select '{
    "steps_in_process": {"pending": "initializing>enqueuing_steps>steps_in_process", "initializing":
      "enqueuing_steps>steps_in_process", "enqueuing_steps": "steps_in_process", "steps_in_process":
      "evaluating_results>enqueuing_steps>steps_in_process", "evaluating_results": "enqueuing_steps>steps_in_process",
      "waiting_for_dependencies": "evaluating_results>enqueuing_steps>steps_in_process", "waiting_for_retry":
      "enqueuing_steps>steps_in_process", "blocked_by_failures": "evaluating_results>enqueuing_steps>steps_in_process",
      "error": "enqueuing_steps>steps_in_process"},
    "waiting_for_dependencies": {"pending": "initializing>waiting_for_dependencies", "initializing":
      "waiting_for_dependencies", "enqueuing_steps": "steps_in_process>evaluating_results>waiting_for_dependencies",
      "steps_in_process": "evaluating_results>waiting_for_dependencies", "evaluating_results": "waiting_for_dependencies",
      "waiting_for_dependencies": "", "waiting_for_retry":
      "enqueuing_steps>steps_in_process>evaluating_results>waiting_for_dependencies", "blocked_by_failures":
      "evaluating_results>waiting_for_dependencies", "error":
      "enqueuing_steps>steps_in_process>evaluating_results>waiting_for_dependencies"},
    "waiting_for_retry": {"pending": "initializing>enqueuing_steps>steps_in_process>waiting_for_retry", "initializing":
      "enqueuing_steps>steps_in_process>waiting_for_retry", "enqueuing_steps": "steps_in_process>waiting_for_retry",
      "steps_in_process": "waiting_for_retry", "evaluating_results": "enqueuing_steps>steps_in_process>waiting_for_retry",
      "waiting_for_dependencies": "evaluating_results>enqueuing_steps>steps_in_process>waiting_for_retry", "waiting_for_retry":
      "", "blocked_by_failures": "evaluating_results>enqueuing_steps>steps_in_process>waiting_for_retry", "error":
      "enqueuing_steps>steps_in_process>waiting_for_retry"},
    "blocked_by_failures": {"pending": "initializing>waiting_for_dependencies>evaluating_results>blocked_by_failures",
      "initializing": "waiting_for_dependencies>evaluating_results>blocked_by_failures", "enqueuing_steps":
      "steps_in_process>evaluating_results>blocked_by_failures", "steps_in_process": "evaluating_results>blocked_by_failures",
      "evaluating_results": "blocked_by_failures", "waiting_for_dependencies": "evaluating_results>blocked_by_failures",
      "waiting_for_retry": "enqueuing_steps>steps_in_process>evaluating_results>blocked_by_failures", "blocked_by_failures":
      "", "error": "enqueuing_steps>steps_in_process>evaluating_results>blocked_by_failures"},
    "complete": {"pending": "initializing>complete", "initializing": "complete", "enqueuing_steps":
      "steps_in_process>evaluating_results>complete", "steps_in_process": "evaluating_results>complete", "evaluating_results":
      "complete", "waiting_for_dependencies": "evaluating_results>complete", "waiting_for_retry":
      "enqueuing_steps>steps_in_process>evaluating_results>complete", "blocked_by_failures": "evaluating_results>complete",
      "complete": "", "error": "enqueuing_steps>steps_in_process>evaluating_results>complete"},
    "error": {"pending": "initializing>waiting_for_dependencies>evaluating_results>blocked_by_failures>error", "initializing":
      "waiting_for_dependencies>evaluating_results>blocked_by_failures>error", "enqueuing_steps":
      "steps_in_process>evaluating_results>blocked_by_failures>error", "steps_in_process":
      "evaluating_results>blocked_by_failures>error", "evaluating_results": "blocked_by_failures>error",
      "waiting_for_dependencies": "evaluating_results>blocked_by_failures>error", "waiting_for_retry":
      "enqueuing_steps>steps_in_process>evaluating_results>blocked_by_failures>error", "blocked_by_failures": "error", "error":
      ""},
    "cancelled": {"pending": "cancelled", "initializing": "cancelled", "enqueuing_steps": "cancelled", "steps_in_process":
      "cancelled", "evaluating_results": "cancelled", "waiting_for_dependencies": "cancelled", "waiting_for_retry":
      "cancelled", "blocked_by_failures": "cancelled", "cancelled": ""},
    "resolved_manually": {"blocked_by_failures": "resolved_manually", "resolved_manually": ""}}'::jsonb->p_to->>p_from
$$;

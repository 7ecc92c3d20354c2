-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The states a step passes through for one kind of change, beginning with the state it is in; null: not legal. A change that
-- makes the step ready ends in `pending`; `placed_path` says where it goes from there.
create or replace function tasker.step_path(p_from text, p_kind text) returns text
language sql immutable parallel safe as $$
  select '{
    "ok": {"in_progress": "in_progress>enqueued_for_orchestration>complete", "enqueued_for_orchestration":
      "enqueued_for_orchestration>complete"},
    "retry": {"in_progress": "in_progress>enqueued_as_error_for_orchestration>waiting_for_retry",
      "enqueued_as_error_for_orchestration": "enqueued_as_error_for_orchestration>waiting_for_retry"},
    "fail": {"in_progress": "in_progress>enqueued_as_error_for_orchestration>error", "enqueued_as_error_for_orchestration":
      "enqueued_as_error_for_orchestration>error", "enqueued_for_orchestration": "enqueued_for_orchestration>error", "pending":
      "pending>error", "enqueued": "enqueued>error"},
    "expire": {"pending": "pending>error", "enqueued": "enqueued>error", "in_progress":
      "in_progress>enqueued_as_error_for_orchestration>error", "waiting_for_retry": "waiting_for_retry>pending>error"},
    "release": {"in_progress": "in_progress>enqueued"},
    "defer": {"in_progress": "in_progress>waiting_for_retry"},
    "promote": {"waiting_for_retry": "waiting_for_retry>pending"},
    "unhold": {"pending": "pending"},
    "hold": {"enqueued": "enqueued>pending"},
    "reset": {"error": "error>pending"},
    "resolve": {"pending": "pending>resolved_manually", "enqueued": "enqueued>resolved_manually", "in_progress":
      "in_progress>resolved_manually", "enqueued_for_orchestration": "enqueued_for_orchestration>resolved_manually",
      "enqueued_as_error_for_orchestration": "enqueued_as_error_for_orchestration>resolved_manually", "waiting_for_retry":
      "waiting_for_retry>resolved_manually", "error": "error>resolved_manually"},
    "complete": {"pending": "pending>complete", "enqueued": "enqueued>complete", "in_progress": "in_progress>complete",
      "enqueued_for_orchestration": "enqueued_for_orchestration>complete", "enqueued_as_error_for_orchestration":
      "enqueued_as_error_for_orchestration>complete", "waiting_for_retry": "waiting_for_retry>complete", "error":
      "error>complete"},
    "cancel": {"pending": "pending>cancelled", "enqueued": "enqueued>cancelled", "in_progress": "in_progress>cancelled",
      "enqueued_for_orchestration": "enqueued_for_orchestration>cancelled", "enqueued_as_error_for_orchestration":
      "enqueued_as_error_for_orchestration>cancelled", "waiting_for_retry": "waiting_for_retry>cancelled", "error":
      "error>cancelled"}}'::jsonb->p_kind->>p_from
$$;

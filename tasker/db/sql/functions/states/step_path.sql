-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The states that a step passes through for one kind of change, one letter each, starting with its current state; null: not
-- legal. A change that makes the step ready ends in `pending`: see `placed_path`.
create or replace function tasker.step_path(p_from text, p_kind text) returns text
language sql immutable parallel safe as $$
  select '{
    "ok": {"in_progress": "IOC", "enqueued_for_orchestration": "OC"},
    "retry": {"in_progress": "IXW", "enqueued_as_error_for_orchestration": "XW"},
    "fail": {"in_progress": "IXF", "enqueued_as_error_for_orchestration": "XF", "enqueued_for_orchestration": "OF", "pending":
      "PF", "enqueued": "EF"},
    "expire": {"pending": "PF", "enqueued": "EF", "in_progress": "IXF", "waiting_for_retry": "WPF"},
    "release": {"in_progress": "IE"},
    "defer": {"in_progress": "IW"},
    "promote": {"waiting_for_retry": "WP"},
    "unhold": {"pending": "P"},
    "hold": {"enqueued": "EP"},
    "reset": {"error": "FP"},
    "resolve": {"pending": "PR", "enqueued": "ER", "in_progress": "IR", "enqueued_for_orchestration": "OR",
      "enqueued_as_error_for_orchestration": "XR", "waiting_for_retry": "WR", "error": "FR"},
    "complete": {"pending": "PC", "enqueued": "EC", "in_progress": "IC", "enqueued_for_orchestration": "OC",
      "enqueued_as_error_for_orchestration": "XC", "waiting_for_retry": "WC", "error": "FC"},
    "cancel": {"pending": "PK", "enqueued": "EK", "in_progress": "IK", "enqueued_for_orchestration": "OK",
      "enqueued_as_error_for_orchestration": "XK", "waiting_for_retry": "WK", "error": "FK"}}'::jsonb->p_kind->>p_from
$$;

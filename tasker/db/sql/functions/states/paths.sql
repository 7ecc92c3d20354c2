-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The states that a step passes through for one kind of change, one letter each, starting with its current
-- state; null: not legal. A change that makes the step ready ends in `pending`: see `placed_path`.
create or replace function tasker.step_path(p_from text, p_kind text) returns text
language sql immutable parallel safe as $$
  select '{
    "ok": {"in_progress": "IOC", "enqueued_for_orchestration": "OC"},
    "retry": {"in_progress": "IXW", "enqueued_as_error_for_orchestration": "XW"},
    "fail": {"in_progress": "IXF", "enqueued_as_error_for_orchestration": "XF",
      "enqueued_for_orchestration": "OF", "pending": "PF", "enqueued": "EF"},
    "expire": {"pending": "PF", "enqueued": "EF", "in_progress": "IXF", "waiting_for_retry": "WPF"},
    "ahead": {"pending": "PEIOC"},
    "release": {"in_progress": "IE"},
    "defer": {"in_progress": "IW"},
    "snooze": {"in_progress": "IW"},
    "suspend": {"in_progress": "I"},
    "resume": {"in_progress": "IWP"},
    "promote": {"waiting_for_retry": "WP"},
    "unhold": {"pending": "P"},
    "hold": {"enqueued": "EP"},
    "reset": {"error": "FP"},
    "resolve": {"pending": "PR", "enqueued": "ER", "in_progress": "IR", "enqueued_for_orchestration": "OR",
      "enqueued_as_error_for_orchestration": "XR", "waiting_for_retry": "WR", "error": "FR"},
    "complete": {"pending": "PC", "enqueued": "EC", "in_progress": "IC", "enqueued_for_orchestration": "OC",
      "enqueued_as_error_for_orchestration": "XC", "waiting_for_retry": "WC", "error": "FC"},
    "cancel": {"pending": "PK", "enqueued": "EK", "in_progress": "IK", "enqueued_for_orchestration": "OK",
      "enqueued_as_error_for_orchestration": "XK", "waiting_for_retry": "WK", "error": "FK"},
    "skip": {"pending": "PK"}}'::jsonb->p_kind->>p_from
$$;

-- The states that a task passes through to reach `p_to`, one letter each, without its current state; '' if
-- it is there already, null if there is no path. The path from steps_in_process to itself passes through
-- evaluation: a result that makes further steps ready takes it.
create or replace function tasker.task_path(p_from text, p_to text) returns text
language sql immutable parallel safe as $$
  select '{
    "steps_in_process": {"pending": "NQS", "initializing": "QS", "enqueuing_steps": "S",
      "steps_in_process": "VQS", "evaluating_results": "QS", "waiting_for_dependencies": "VQS",
      "waiting_for_retry": "QS", "blocked_by_failures": "VQS", "error": "QS"},
    "waiting_for_dependencies": {"pending": "ND", "initializing": "D", "enqueuing_steps": "SVD",
      "steps_in_process": "VD", "evaluating_results": "D", "waiting_for_dependencies": "",
      "waiting_for_retry": "QSVD", "blocked_by_failures": "VD", "error": "QSVD"},
    "waiting_for_retry": {"pending": "NQSW", "initializing": "QSW", "enqueuing_steps": "SW",
      "steps_in_process": "W", "evaluating_results": "QSW", "waiting_for_dependencies": "VQSW",
      "waiting_for_retry": "", "blocked_by_failures": "VQSW", "error": "QSW"},
    "blocked_by_failures": {"pending": "NDVB", "initializing": "DVB", "enqueuing_steps": "SVB",
      "steps_in_process": "VB", "evaluating_results": "B", "waiting_for_dependencies": "VB",
      "waiting_for_retry": "QSVB", "blocked_by_failures": "", "error": "QSVB"},
    "complete": {"pending": "NC", "initializing": "C", "enqueuing_steps": "SVC", "steps_in_process": "VC",
      "evaluating_results": "C", "waiting_for_dependencies": "VC", "waiting_for_retry": "QSVC",
      "blocked_by_failures": "VC", "complete": "", "error": "QSVC"},
    "error": {"pending": "NDVBF", "initializing": "DVBF", "enqueuing_steps": "SVBF",
      "steps_in_process": "VBF", "evaluating_results": "BF", "waiting_for_dependencies": "VBF",
      "waiting_for_retry": "QSVBF", "blocked_by_failures": "F", "error": ""},
    "cancelled": {"pending": "K", "initializing": "K", "enqueuing_steps": "K", "steps_in_process": "K",
      "evaluating_results": "K", "waiting_for_dependencies": "K", "waiting_for_retry": "K",
      "blocked_by_failures": "K", "error": "QK", "cancelled": ""},
    "resolved_manually": {"blocked_by_failures": "R", "resolved_manually": ""}}'::jsonb->p_to->>p_from
$$;

-- The path of one state in the engine's and the history's form: one letter for each state.
create or replace function tasker.path_code(p_path text) returns text
language sql immutable parallel safe as $$
  select '{"pending": "P", "enqueued": "E", "in_progress": "I", "enqueued_for_orchestration": "O",
    "enqueued_as_error_for_orchestration": "X", "waiting_for_retry": "W", "complete": "C", "error": "F",
    "cancelled": "K", "resolved_manually": "R", "initializing": "N", "enqueuing_steps": "Q",
    "steps_in_process": "S", "evaluating_results": "V", "waiting_for_dependencies": "D",
    "blocked_by_failures": "B"}'::jsonb->>p_path
$$;

-- The last state of a path.
create or replace function tasker.path_end(p_path text) returns text
language sql immutable parallel safe as $$
  select '{"P": "pending", "E": "enqueued", "I": "in_progress", "O": "enqueued_for_orchestration",
    "X": "enqueued_as_error_for_orchestration", "W": "waiting_for_retry", "C": "complete", "F": "error",
    "K": "cancelled", "R": "resolved_manually", "N": "initializing", "Q": "enqueuing_steps",
    "S": "steps_in_process", "V": "evaluating_results", "D": "waiting_for_dependencies",
    "B": "blocked_by_failures"}'::jsonb->>right(p_path, 1)
$$;

-- The path of a row of the history with the names of its states: `pending>enqueued>in_progress`. The reverse
-- of path_code.
create or replace function tasker.path_text(p_code text) returns text
language sql immutable parallel safe as $$
  select rtrim(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(p_code, 'X',
      'enqueued_as_error_for_orchestration>'), 'O', 'enqueued_for_orchestration>'), 'D',
      'waiting_for_dependencies>'), 'B', 'blocked_by_failures>'), 'V', 'evaluating_results>'), 'R',
      'resolved_manually>'), 'W', 'waiting_for_retry>'), 'S', 'steps_in_process>'), 'Q', 'enqueuing_steps>'),
      'N', 'initializing>'), 'I', 'in_progress>'), 'K', 'cancelled>'), 'C', 'complete>'), 'E', 'enqueued>'),
      'P', 'pending>'), 'F', 'error>'), '>')
$$;

-- The kind of a worker's report, by its path in the history: true for a result, false for a failure, null
-- for neither.
create or replace function tasker.path_succeeded(p_code text) returns boolean
language sql immutable parallel safe as $$
  select case when p_code ~ 'IO' then true when p_code ~ 'IX' then false end
$$;

-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The states that a task passes through to reach `p_to`, one letter each, without its current state; '' if it is there
-- already, null if there is no path. The path from steps_in_process to itself passes through evaluation: a result that makes
-- further steps ready takes it.
create or replace function tasker.task_path(p_from text, p_to text) returns text
language sql immutable parallel safe as $$
  select '{
    "steps_in_process": {"pending": "NQS", "initializing": "QS", "enqueuing_steps": "S", "steps_in_process": "VQS",
      "evaluating_results": "QS", "waiting_for_dependencies": "VQS", "waiting_for_retry": "QS", "blocked_by_failures": "VQS",
      "error": "QS"},
    "waiting_for_dependencies": {"pending": "ND", "initializing": "D", "enqueuing_steps": "SVD", "steps_in_process": "VD",
      "evaluating_results": "D", "waiting_for_dependencies": "", "waiting_for_retry": "QSVD", "blocked_by_failures": "VD",
      "error": "QSVD"},
    "waiting_for_retry": {"pending": "NQSW", "initializing": "QSW", "enqueuing_steps": "SW", "steps_in_process": "W",
      "evaluating_results": "QSW", "waiting_for_dependencies": "VQSW", "waiting_for_retry": "", "blocked_by_failures": "VQSW",
      "error": "QSW"},
    "blocked_by_failures": {"pending": "NDVB", "initializing": "DVB", "enqueuing_steps": "SVB", "steps_in_process": "VB",
      "evaluating_results": "B", "waiting_for_dependencies": "VB", "waiting_for_retry": "QSVB", "blocked_by_failures": "",
      "error": "QSVB"},
    "complete": {"pending": "NC", "initializing": "C", "enqueuing_steps": "SVC", "steps_in_process": "VC",
      "evaluating_results": "C", "waiting_for_dependencies": "VC", "waiting_for_retry": "QSVC", "blocked_by_failures": "VC",
      "complete": "", "error": "QSVC"},
    "error": {"pending": "NDVBF", "initializing": "DVBF", "enqueuing_steps": "SVBF", "steps_in_process": "VBF",
      "evaluating_results": "BF", "waiting_for_dependencies": "VBF", "waiting_for_retry": "QSVBF", "blocked_by_failures": "F",
      "error": ""},
    "cancelled": {"pending": "K", "initializing": "K", "enqueuing_steps": "K", "steps_in_process": "K", "evaluating_results":
      "K", "waiting_for_dependencies": "K", "waiting_for_retry": "K", "blocked_by_failures": "K", "cancelled": ""},
    "resolved_manually": {"blocked_by_failures": "R", "resolved_manually": ""}}'::jsonb->p_to->>p_from
$$;

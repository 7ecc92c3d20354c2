-- What the processes of a fleet may do, each kind with a role of its own that other roles are members of; nobody logs in as
-- one of these. Run by `tasker db roles`, in one transaction, as the owner of the schema; running it again puts everything back
-- as it stands here. Rows of all tables may be read by the three that work, for the engine's functions run with the rights of
-- whoever calls them; what may be written is said table by table. A test holds that every table is decided about.

revoke all on all tables in schema tasker from {worker}, {orchestrator}, {api}, {exporter};
revoke all on schema tasker from {worker}, {orchestrator}, {api}, {exporter};
grant usage on schema tasker to {worker}, {orchestrator}, {api}, {exporter};
grant select on all tables in schema tasker to {worker}, {orchestrator}, {api};

-- Moving steps and tasks, with their history: whoever brings a result, and an operator.
grant update on tasker.tasks to {worker}, {orchestrator}, {api};
grant insert, update on tasker.workflow_steps, tasker.enqueue_counters, tasker.repairs, tasker.tasks_dlq,
  tasker.dlq_counters, tasker.unserved_steps to {worker}, {orchestrator}, {api};
grant insert, update, delete on tasker.ready_backlog, tasker.step_results to {worker}, {orchestrator}, {api};
grant insert on tasker.dynamic_edges, tasker.step_inputs, tasker.step_failures, tasker.step_moves, tasker.task_moves,
  tasker.refused_results, tasker.poison_messages to {worker}, {orchestrator}, {api};
grant insert, update on tasker.task_namespaces to {worker}, {orchestrator}, {api};

-- The events of what they accept, and their order, which whoever reads first gives them; a worker hands some to an orchestrator.
grant insert on tasker.domain_events, tasker.event_positions to {worker}, {orchestrator}, {api};
grant insert, delete on tasker.unplaced_events to {worker}, {orchestrator}, {api};
grant usage on sequence tasker.domain_event_positions to {worker}, {orchestrator}, {api};
grant insert, update, delete on tasker.parked_events to {worker}, {orchestrator}, {api};
grant insert, update on tasker.event_subscribers to {worker}, {orchestrator}, {api};
grant insert, update, delete on tasker.event_deliveries to {worker}, {orchestrator}, {api};

-- Presence, and what sweeps do for all; a storm of failures is paused and resumed by them.
grant insert, update, delete on tasker.workers to {worker}, {orchestrator};
grant insert, update on tasker.worker_callables, tasker.turns to {worker}, {orchestrator};
grant delete on tasker.page_sessions to {worker}, {orchestrator};
grant update on tasker.staleness_settings to {worker}, {orchestrator};
grant insert, delete on tasker.pauses to {worker}, {orchestrator}, {api};
grant insert on tasker.pause_log to {worker}, {orchestrator}, {api};
grant update on tasker.dlq_replays, tasker.dlq_replay_items to {worker}, {orchestrator}, {api};

-- Only workers run handlers.
grant insert, update on tasker.step_checkpoints, tasker.step_progress to {worker};
grant insert on tasker.step_logs to {worker};

-- New tasks: over HTTP, and those that are asked for by message.
grant insert on tasker.tasks, tasker.task_details to {orchestrator}, {api};

-- Templates: a worker registers what it finds at its start.
grant insert, update on tasker.named_tasks, tasker.templates to {worker}, {api};
grant insert on tasker.named_steps, tasker.template_steps, tasker.template_edges, tasker.template_events
  to {worker}, {api};

-- Operators' actions, replays.
grant update on tasker.task_details, tasker.workers to {api};
grant insert on tasker.dlq_replays, tasker.dlq_replay_items to {api};

-- Who did what by hand, whichever role a person's command comes with: added, never taken away.
grant insert, update (status, refusal) on tasker.operator_actions to {worker}, {orchestrator}, {api};
grant insert, update, delete on tasker.saved_views to {api};
grant insert, delete on tasker.page_sessions to {api};

-- Retention, for which orchestrators are: a process that may not delete leaves it to the others.
grant delete on tasker.tasks, tasker.task_details, tasker.workflow_steps, tasker.dynamic_edges, tasker.step_inputs,
  tasker.step_failures, tasker.step_checkpoints, tasker.step_moves, tasker.task_moves, tasker.refused_results,
  tasker.unserved_steps, tasker.tasks_dlq, tasker.dlq_replays, tasker.dlq_replay_items, tasker.domain_events,
  tasker.event_positions, tasker.step_logs, tasker.step_progress, tasker.domain_events_pruned to {orchestrator};
grant insert on tasker.domain_events_pruned to {orchestrator};

-- Who exports numbers reads states, times and counts: no input, result, failure, snapshot, plan or message.
grant select on tasker.task_namespaces, tasker.named_tasks, tasker.named_steps, tasker.template_steps, tasker.template_edges,
  tasker.tasks, tasker.workflow_steps, tasker.dynamic_edges, tasker.task_moves, tasker.step_moves, tasker.ready_backlog,
  tasker.enqueue_counters, tasker.workers, tasker.pauses, tasker.unserved_steps, tasker.repairs, tasker.turns,
  tasker.dlq_counters, tasker.dlq_replays, tasker.schema_scripts, tasker.staleness_settings, tasker.workflow_step_edges,
  tasker.task_transitions,
  tasker.workflow_step_transitions, tasker.task_transition_log, tasker.step_transition_log, tasker.v_dlq_dashboard,
  tasker.v_task_staleness_monitoring, tasker.step_progress to {exporter};
grant select (template_id, namespace_id, named_task_uuid, step_count, static_count, created_at, lifecycle)
  on tasker.templates to {exporter};
grant select (failure_id, task_uuid, workflow_step_uuid, attempt, created_at) on tasker.step_failures to {exporter};
grant select (dlq_entry_uuid, task_uuid, original_state, dlq_reason, dlq_timestamp, fingerprints, resolution_status,
  resolved_at, created_at) on tasker.tasks_dlq to {exporter};

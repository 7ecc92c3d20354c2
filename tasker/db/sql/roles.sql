-- Rights of the processes of a fleet. Each kind of process has a group role; no role here can log in. `tasker
-- db roles` runs this script in one transaction as the owner of the schema; running it again restores exactly
-- these rights. The worker, the orchestrator and the API may read the rows of all tables, because the
-- engine's functions run with the rights of their caller; the right to write is granted table by table. A
-- test checks that every table is covered.

revoke all on all tables in schema tasker from {worker}, {orchestrator}, {api}, {exporter};
revoke all on schema tasker from {worker}, {orchestrator}, {api}, {exporter};
grant usage on schema tasker to {worker}, {orchestrator}, {api}, {exporter};
grant select on all tables in schema tasker to {worker}, {orchestrator}, {api};

-- State changes of steps and tasks with their history: written by processes that complete steps, and by
-- operator actions.
grant update on tasker.tasks to {worker}, {orchestrator}, {api};
grant insert, update on tasker.workflow_steps, tasker.enqueue_counters, tasker.repairs, tasker.tasks_dlq,
  tasker.dlq_counters, tasker.compensation_counters, tasker.unserved_steps to {worker}, {orchestrator}, {api};
grant insert, update, delete on tasker.ready_backlog, tasker.timers, tasker.step_results to {worker},
  {orchestrator}, {api};
grant insert, update, delete on tasker.limit_waiters, tasker.limit_permits, tasker.limit_notes,
  tasker.limit_buckets to {worker}, {orchestrator}, {api};
grant insert on tasker.dynamic_edges, tasker.step_inputs, tasker.step_failures, tasker.step_moves,
  tasker.task_moves, tasker.refused_results, tasker.poison_messages to {worker}, {orchestrator}, {api};
grant insert, update on tasker.task_namespaces to {worker}, {orchestrator}, {api};

-- The events of accepted results, and their positions, which the first reader assigns; a worker parks some
-- events for an orchestrator.
grant insert on tasker.domain_events, tasker.event_positions to {worker}, {orchestrator}, {api};
grant insert, delete on tasker.unplaced_events to {worker}, {orchestrator}, {api};
grant usage on sequence tasker.domain_event_positions to {worker}, {orchestrator}, {api};
grant insert, update, delete on tasker.parked_events to {worker}, {orchestrator}, {api};
grant insert, update on tasker.event_subscribers to {worker}, {orchestrator}, {api};
grant insert, update, delete on tasker.event_deliveries to {worker}, {orchestrator}, {api};

-- Waits: every write of a task begins and ends them, and every process looks for the events of others.
grant insert, update on tasker.step_waits to {worker}, {orchestrator}, {api};
-- sweeps prune them
grant insert, update, delete on tasker.incoming_events to {worker}, {orchestrator}, {api};
grant insert, delete on tasker.wait_events to {worker}, {orchestrator}, {api};
-- child tasks: each last write of a child appends its end, and every process starts and counts them
grant insert, update on tasker.fan_outs, tasker.fan_out_items to {worker}, {orchestrator}, {api};
grant insert, delete on tasker.child_ends to {worker}, {orchestrator}, {api};
grant insert, update on tasker.task_families to {worker}, {orchestrator}, {api};
grant insert, delete on tasker.approval_votes to {worker}, {orchestrator}, {api};

-- Registration, and the sweeps that run once for the whole fleet; a sweep also pauses and resumes after a
-- failure burst.
grant insert, update, delete on tasker.workers to {worker}, {orchestrator};
grant insert, update on tasker.worker_callables, tasker.turns to {worker}, {orchestrator};
grant delete on tasker.page_sessions to {worker}, {orchestrator};
grant update on tasker.staleness_settings to {worker}, {orchestrator};
grant insert, delete on tasker.pauses to {worker}, {orchestrator}, {api};
grant insert on tasker.pause_log to {worker}, {orchestrator}, {api};
grant update on tasker.dlq_replays, tasker.dlq_replay_items to {worker}, {orchestrator}, {api};

-- Only workers run handlers. Every process that matches an event stores it for the handler that waits for it.
grant insert, update on tasker.step_checkpoints to {worker}, {orchestrator}, {api};
grant insert, update on tasker.step_progress to {worker};
grant insert, update, delete on tasker.locks, tasker.memos to {worker}, {orchestrator};   -- sweeps prune them
grant insert on tasker.step_logs to {worker};
grant insert, update on tasker.flow_turns to {worker};   -- claims in fair namespaces

-- New tasks: submitted over HTTP, requested by message, by schedules, or by handlers. A worker leaves
-- schedules to the others; its templates declare them.
grant insert on tasker.tasks, tasker.task_details, tasker.task_links to {worker}, {orchestrator}, {api};
grant insert, update on tasker.unique_keys, tasker.debounces, tasker.submission_buckets to {worker},
  {orchestrator}, {api};
-- debounce
grant update (context, context_bytes, deadline_at) on tasker.task_details to {worker}, {orchestrator};
grant update, delete on tasker.submission_buckets to {worker}, {orchestrator};
grant insert, update, delete on tasker.schedules, tasker.schedule_fires to {orchestrator}, {api};
grant insert, update on tasker.schedules to {worker};
-- of one that expires, or makes room for a fire
grant update (cancel_reason) on tasker.task_details to {worker}, {orchestrator};

-- Templates: a worker registers its templates when it starts.
grant insert, update on tasker.named_tasks, tasker.templates to {worker}, {api};
grant insert on tasker.named_steps, tasker.template_steps, tasker.template_edges, tasker.template_events,
  tasker.template_limits to {worker}, {api};
grant insert, delete on tasker.flow_weights to {worker}, {api};
grant insert, update on tasker.limit_rules to {worker}, {orchestrator}, {api};

-- Operator actions and replays.
grant update on tasker.task_details, tasker.workers to {api};
grant insert on tasker.dlq_replays, tasker.dlq_replay_items to {api};

-- The audit log of operator actions, whichever role a command of a person uses: rows are added, never
-- deleted.
grant insert, update (status, refusal) on tasker.operator_actions to {worker}, {orchestrator}, {api};
grant insert, update, delete on tasker.saved_views to {api};
grant insert, delete on tasker.page_sessions to {api};

-- Retention, which orchestrators run: a process without the right to delete leaves it to the others.
grant delete on tasker.tasks, tasker.task_details, tasker.workflow_steps, tasker.dynamic_edges,
  tasker.step_inputs, tasker.step_failures, tasker.step_checkpoints, tasker.step_moves, tasker.task_moves,
  tasker.refused_results, tasker.unserved_steps, tasker.tasks_dlq, tasker.dlq_replays,
  tasker.dlq_replay_items, tasker.domain_events,
  tasker.event_positions, tasker.step_logs, tasker.step_progress,
  tasker.domain_events_pruned, tasker.unique_keys, tasker.debounces, tasker.step_waits, tasker.wait_events,
  tasker.task_links, tasker.fan_outs, tasker.fan_out_items, tasker.task_families to {orchestrator};
grant insert on tasker.domain_events_pruned to {orchestrator};
grant update (event_id) on tasker.domain_events to {orchestrator};   -- to lock the rows that it deletes

-- An exporter of metrics reads states, times and counts: no input, result, failure, snapshot, plan or
-- message.
grant select on tasker.task_namespaces, tasker.named_tasks, tasker.named_steps, tasker.template_steps,
  tasker.template_edges, tasker.tasks, tasker.workflow_steps, tasker.dynamic_edges, tasker.task_moves,
  tasker.step_moves, tasker.timers,
  tasker.enqueue_counters, tasker.workers, tasker.pauses, tasker.unserved_steps, tasker.repairs, tasker.turns,
  tasker.dlq_counters, tasker.compensation_counters, tasker.dlq_replays,
  tasker.schema_scripts, tasker.staleness_settings,
  tasker.workflow_step_edges, tasker.task_transitions,
  tasker.workflow_step_transitions, tasker.task_transition_log, tasker.step_transition_log,
  tasker.v_dlq_dashboard,
  tasker.v_task_staleness_monitoring, tasker.step_progress, tasker.limit_rules to {exporter};
-- values of keys are data of tasks
grant select (workflow_step_uuid, task_uuid, namespace_id, rank, paused, unserved, priority)
  on tasker.ready_backlog to {exporter};
grant select (namespace_id, round) on tasker.flow_turns to {exporter};
grant select (rule_id) on tasker.limit_waiters, tasker.limit_permits to {exporter};
grant select (kind, ended_at) on tasker.step_waits to {exporter};
grant select (workflow_step_uuid, total, started, running, succeeded, failed, state) on tasker.fan_outs
  to {exporter};
grant select (namespace_id, routed_at) on tasker.incoming_events to {exporter};
grant select (template_id, namespace_id, named_task_uuid, step_count, static_count, created_at, lifecycle)
  on tasker.templates to {exporter};
grant select (failure_id, task_uuid, workflow_step_uuid, attempt, created_at)
  on tasker.step_failures to {exporter};
grant select (dlq_entry_uuid, task_uuid, original_state, dlq_reason, dlq_timestamp, fingerprints,
  resolution_status, resolved_at, created_at) on tasker.tasks_dlq to {exporter};

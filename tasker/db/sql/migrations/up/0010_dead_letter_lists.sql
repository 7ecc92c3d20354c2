-- The search columns of entries are stored beside their snapshots, which are large: lists and groups read only these.
alter table tasker.tasks_dlq
  add column namespace text generated always as (task_snapshot->>'namespace') stored,
  add column template text generated always as (task_snapshot->>'task_name') stored;
create index tasks_dlq_by_namespace on tasker.tasks_dlq (namespace, dlq_timestamp desc, dlq_entry_uuid desc);   -- lists
create index tasks_dlq_pending on tasker.tasks_dlq (dlq_reason, dlq_timestamp, dlq_entry_uuid) include (namespace)
  where resolution_status = 'pending';                                                                          -- queue
create index tasks_dlq_by_fingerprint on tasker.tasks_dlq using gin (fingerprints);   -- the same failures

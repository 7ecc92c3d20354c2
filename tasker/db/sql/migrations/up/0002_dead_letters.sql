-- Dead letters, tasks that need an operator: the state, time and reason, the investigator, and the findings. An entry
-- is a record: it never moves a task or a step. A task has at most one pending entry, and any number of closed ones.
create type tasker.dlq_reason as enum
  ('staleness_timeout', 'max_retries_exceeded', 'permanent_failure', 'dependency_cycle_detected', 'worker_unavailable', 'manual_dlq');
create type tasker.dlq_resolution_status as enum ('pending', 'manually_resolved', 'permanently_failed', 'cancelled');

create table tasker.tasks_dlq (
  dlq_entry_uuid    uuid primary key default tasker.uuid_v7(),
  task_uuid         uuid not null,
  original_state    varchar(50) not null,      -- of the task, before the dead letter
  dlq_reason        tasker.dlq_reason not null,
  dlq_timestamp     timestamptz not null default tasker.now(),
  task_snapshot     jsonb,
  fingerprints      text[] not null default '{}',   -- of the final failures of its steps
  resolution_status tasker.dlq_resolution_status not null default 'pending',
  resolution_notes  text,
  resolved_at       timestamptz,
  resolved_by       varchar(255),
  metadata          jsonb,
  created_at        timestamptz not null default tasker.now(),
  updated_at        timestamptz not null default tasker.now()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10);
create unique index idx_dlq_unique_pending_task on tasker.tasks_dlq (task_uuid) where resolution_status = 'pending';
create index tasks_dlq_of_task on tasker.tasks_dlq (task_uuid, dlq_timestamp desc);      -- the newest entry of a task
create index tasks_dlq_by_time on tasker.tasks_dlq (dlq_timestamp desc);                 -- lists
-- v_dlq_dashboard: all columns that it counts, without reading the entries, each of which has a snapshot
create index tasks_dlq_counted on tasker.tasks_dlq (dlq_reason, resolution_status, dlq_timestamp, resolved_at);

-- The staleness limits of the last process that searched: the views use the same limits as the search.
create table tasker.staleness_settings (
  one boolean primary key default true check (one),
  waiting_for_dependencies_minutes double precision not null default 60,
  waiting_for_retry_minutes        double precision not null default 30,
  steps_in_process_minutes         double precision not null default 30,
  task_max_lifetime_minutes        double precision not null default 1440,
  checkpoint_stall_minutes         double precision not null default 15
);
insert into tasker.staleness_settings default values;

-- The staleness limits of templates, beside the plan, which is large.
alter table tasker.templates add column lifecycle jsonb generated always as (plan->'lifecycle') stored;
alter table tasker.template_steps add column max_in_process_minutes double precision;

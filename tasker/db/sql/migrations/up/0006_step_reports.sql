-- Log lines of handlers. Written outside of the engine's transactions (tasker.report_v1), and never read by them.
create table tasker.step_logs (
  workflow_step_uuid uuid not null,
  claim_token        bigint not null,
  line               int not null,                -- of the claim, from 1
  task_uuid          uuid not null,
  logged_at          timestamptz not null,
  attempt            int not null,
  level              smallint not null,           -- as in Python's logging: 10 debug, 20 info, 30 warning, 40 error
  logger             text not null,
  message            text not null,
  fields             jsonb,
  primary key (workflow_step_uuid, claim_token, line)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create index step_logs_of_task on tasker.step_logs (task_uuid, logged_at);

-- The progress of the claim that reported last: valid for a step that runs under this token, and for no other.
create table tasker.step_progress (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  claim_token        bigint not null,
  fraction           double precision check (fraction between 0 and 1),
  done               double precision,
  total              double precision,
  message            text,
  first_at           timestamptz not null,        -- of the claim's first report of progress: the start of estimates
  first_fraction     double precision,
  reported_at        timestamptz not null
) with (fillfactor = 50);
create index step_progress_by_time on tasker.step_progress (reported_at);

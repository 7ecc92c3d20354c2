-- What handlers said while they ran. Written beside the engine's transactions (tasker.report_v1), and never read by them.
create table tasker.step_logs (
  workflow_step_uuid uuid not null,
  claim_token        bigint not null,
  line               int not null,                -- of the claim, from 1
  task_uuid          uuid not null,
  logged_at          timestamptz not null,
  attempt            int not null,
  level              smallint not null,           -- as Python's logging counts: 10 debug, 20 info, 30 warning, 40 error
  logger             text not null,
  message            text not null,
  fields             jsonb,
  primary key (workflow_step_uuid, claim_token, line)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create index step_logs_of_task on tasker.step_logs (task_uuid, logged_at);

-- How far the claim is that reported last: it holds for a step that runs under this token, and for no other.
create table tasker.step_progress (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  claim_token        bigint not null,
  fraction           double precision check (fraction between 0 and 1),
  done               double precision,
  total              double precision,
  message            text,
  first_at           timestamptz not null,        -- of the claim's first report that said how far it is: an estimate begins there
  first_fraction     double precision,
  reported_at        timestamptz not null
) with (fillfactor = 50);
create index step_progress_by_time on tasker.step_progress (reported_at);

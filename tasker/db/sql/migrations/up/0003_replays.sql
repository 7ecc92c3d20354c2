-- Replays of dead letters with the same failure: the entries to reset, the rate, and the progress. The progress is in
-- these rows, so any process can continue a replay.
create table tasker.dlq_replays (
  replay_uuid     uuid primary key default tasker.uuid_v7(),
  state           text not null check (state in ('running', 'paused', 'complete', 'cancelled')),
  filter          jsonb not null,                 -- the requested filter
  fingerprint     text,                           -- only steps with this failure are reset; null: every failed step
  rate_per_second double precision not null,
  actor           text not null,
  reason          text not null,
  total           int not null,
  replayed        int not null default 0,
  skipped         int not null default 0,
  created_at      timestamptz not null,
  paced_at        timestamptz not null,           -- time up to which the rate is used
  -- selects the next replay: locked or fast ones do not delay others
  looked_at       timestamptz not null default '-infinity',
  finished_at     timestamptz
);
create index dlq_replays_running on tasker.dlq_replays (created_at) where state = 'running';   -- replay_v1

create table tasker.dlq_replay_items (
  replay_uuid    uuid not null references tasker.dlq_replays,
  position       int not null,
  dlq_entry_uuid uuid not null,
  task_uuid      uuid not null,
  outcome        text check (outcome in ('replayed', 'skipped')),
  detail         text,
  primary key (replay_uuid, position)
);
create index dlq_replay_items_open on tasker.dlq_replay_items (replay_uuid, position) where outcome is null;
create index dlq_replay_items_of_task on tasker.dlq_replay_items (task_uuid);                     -- prune_v1

-- Replays of dead letters that failed alike: what is to be reset, how fast, and how far it has come. Progress is in these
-- rows, so it does not matter which process goes on with it.
create table tasker.dlq_replays (
  replay_uuid     uuid primary key default tasker.uuid_v7(),
  state           text not null check (state in ('running', 'paused', 'complete', 'cancelled')),
  filter          jsonb not null,                 -- what was asked for
  fingerprint     text,                           -- only steps that failed so are reset; null: every failed step
  rate_per_second double precision not null,
  actor           text not null,
  reason          text not null,
  total           int not null,
  replayed        int not null default 0,
  skipped         int not null default 0,
  created_at      timestamptz not null,
  paced_at        timestamptz not null,           -- up to when the rate is used up
  looked_at       timestamptz not null default '-infinity',   -- whose turn is next: held or fast ones keep none waiting
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

-- Events that a subscriber failed to process: retried when they are due, or left to an operator. The event is stored
-- here as it was read, so that it may be pruned meanwhile.
create table tasker.event_deliveries (
  subscriber text not null,
  event_uuid uuid not null,
  event      jsonb not null,
  attempts   int not null,
  due_at     timestamptz,             -- null: given up
  error      text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (subscriber, event_uuid)
);
-- due_deliveries_v1
create index event_deliveries_due on tasker.event_deliveries (subscriber, due_at) where due_at is not null;
create index event_deliveries_by_time on tasker.event_deliveries (updated_at);   -- prune_events_v1

-- The actor, time and reason of a subscriber's stop: no process reads for it meanwhile.
alter table tasker.event_subscribers add column stopped jsonb;

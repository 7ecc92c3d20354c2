-- Events that steps publish. The declarations of a template are in template_events, so that the write that ends a step
-- knows the events to write without reading the plan. Events delivered only within a process (`fast`) are not here.
create table tasker.template_events (
  template_id   int not null references tasker.templates,
  ordinal       int not null,
  number        int not null,                   -- position in the step's list
  name          text not null,
  condition     text not null check (condition in ('success', 'failure', 'retryable_failure', 'permanent_failure', 'always')),
  delivery_mode text not null check (delivery_mode in ('durable', 'broadcast')),
  checked       boolean not null,               -- it has a schema: only a validated payload is published
  primary key (template_id, ordinal, number)
);
insert into tasker.template_events (template_id, ordinal, number, name, condition, delivery_mode, checked)
select t.template_id, (s->>'ordinal')::int, e.number - 1, e.event->>'name', e.event->>'condition', e.event->>'delivery_mode',
  coalesce(jsonb_typeof(e.event->'schema') = 'object', false)
from tasker.templates t, jsonb_array_elements(t.plan->'steps') s,
  jsonb_array_elements(coalesce(s->'publishes_events', '[]')) with ordinality e (event, number)
where e.event->>'delivery_mode' in ('durable', 'broadcast');

-- The outbox: written by the transaction that accepts a result (write_events), one row for each event declared for its
-- outcome, also for events that are not published (`withheld` gives the reason). `event_id` follows the order in which
-- the events of a task were written; readers use the position, which an event gets after its commit (place_events), so
-- that an event written early and committed late is not missed. Kept until prune_events_v1, independent of the task.
create table tasker.domain_events (
  event_id           bigint generated always as identity primary key,
  created_at         timestamptz not null,
  event_uuid         uuid not null,
  task_uuid          uuid not null,
  workflow_step_uuid uuid not null,
  correlation_id     uuid not null,
  namespace_id       int not null,
  sort_key           int not null,              -- of the step's move that caused it
  number             int not null,
  attempt            int not null,
  name               text not null,
  step_name          text not null,
  outcome            text not null check (outcome in ('success', 'retryable_failure', 'permanent_failure')),
  delivery_mode      text not null,
  fired_by           text not null,
  payload            jsonb,
  metadata           jsonb,                     -- added by a publisher
  withheld           text,
  check ((payload is null) = (withheld is not null))
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create unique index domain_events_of_move on tasker.domain_events (workflow_step_uuid, sort_key, number);   -- never twice
create unique index domain_events_by_id on tasker.domain_events (event_uuid);                              -- one event
create index domain_events_withheld on tasker.domain_events (event_id) where withheld is not null;         -- events_v1
create index domain_events_of_task on tasker.domain_events (task_uuid);   -- lists of a task
create index domain_events_of_correlation on tasker.domain_events (correlation_id);                        -- lists
create index domain_events_by_time on tasker.domain_events (created_at);   -- prune_events_v1
create sequence tasker.domain_event_positions;

-- The order in which events are read. A separate table, so that assigning a position writes two small rows instead of
-- rewriting a large one.
create table tasker.event_positions (
  position     bigint primary key,
  event_id     bigint not null,
  namespace_id int not null,
  name         text not null
);
create unique index event_positions_of_event on tasker.event_positions (event_id);                          -- events_v1
create index event_positions_by_name on tasker.event_positions (namespace_id, name, position);              -- events_v1

-- Events without a position: written with the event, removed by place_events.
create table tasker.unplaced_events (
  event_id bigint primary key
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The position of each subscriber, and the holder of its lease.
create table tasker.event_subscribers (
  name        text primary key,
  position    bigint not null,
  holder      uuid,
  lease_until timestamptz not null default '-infinity',
  updated_at  timestamptz not null
) with (fillfactor = 50);

-- The worker's part of the events of a result that waits for an orchestrator.
create table tasker.parked_events (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  claim_token        bigint not null,
  events             jsonb not null
);

-- The time before which events were pruned: events of earlier results may be missing.
create table tasker.domain_events_pruned (
  before timestamptz not null
);

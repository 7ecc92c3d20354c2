-- The engine's tables. Hot tables (tasks, workflow_steps) contain only columns that change or guard a change; columns
-- written once are in tables beside them. History has no foreign keys and at most two indexes per table.

-- The current time: a test sets `tasker.now`; otherwise it is the transaction's time.
create function tasker.now() returns timestamptz language sql stable parallel safe as $$
  select coalesce(nullif(current_setting('tasker.now', true), '')::timestamptz, pg_catalog.now())
$$;

-- Time-ordered identifiers (UUID version 7) on every supported server.
do $do$
begin
  if current_setting('server_version_num')::int >= 180000 then
    create function tasker.uuid_v7() returns uuid language sql volatile parallel safe as 'select pg_catalog.uuidv7()';
  else
    create function tasker.uuid_v7() returns uuid language sql volatile parallel safe as $fn$
      select encode(
        set_byte(set_byte(
          overlay(uuid_send(gen_random_uuid())
                  placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                  from 1 for 6),
          6, (b'0111' || get_byte(uuid_send(gen_random_uuid()), 6)::bit(4))::bit(8)::int),
          8, (b'10' || get_byte(uuid_send(gen_random_uuid()), 8)::bit(6))::bit(8)::int), 'hex')::uuid
    $fn$;
  end if;
end
$do$;

-- A step's identifier is its task's with the last 24 bits set to the step's number, so the steps of a task are adjacent
-- in every index, in the order of their creation, and edges need no look-up. Task identifiers end in 24 zero bits.
create function tasker.step_uuid(p_task uuid, p_seq int) returns uuid language sql immutable parallel safe as $$
  select (left(p_task::text, 30) || lpad(to_hex(p_seq), 6, '0'))::uuid
$$;

create table tasker.task_namespaces (
  namespace_id  int generated always as identity primary key,
  task_namespace_uuid uuid not null default tasker.uuid_v7(),
  name          text not null unique,
  created_at    timestamptz not null default tasker.now(),
  mended_at     timestamptz not null default '-infinity',  -- last check by repair_v1
  marks_after   uuid   -- last backlogged step whose mark agrees with the pauses; null: all agree
);

create table tasker.named_tasks (
  named_task_uuid   uuid primary key default tasker.uuid_v7(),
  namespace_id      int not null references tasker.task_namespaces,
  name              text not null,
  version           text not null,
  description       text,
  identity_strategy varchar(20) not null default 'strict',
  metadata          jsonb not null default '{}',
  template_id       int,                    -- the current plan; null only during its registration
  content           text,                   -- hash of the author's text, without the fleet's defaults
  created_at        timestamptz not null default tasker.now(),
  updated_at        timestamptz not null default tasker.now(),
  unique (namespace_id, name, version)
);

-- Compiled templates by content. A task refers to one for its whole life (pinned runs).
create table tasker.templates (
  template_id     int generated always as identity primary key,
  hash            text not null unique,
  namespace_id    int not null references tasker.task_namespaces,
  named_task_uuid uuid not null references tasker.named_tasks,
  step_count      int not null,
  static_count    int not null,
  roots           int[] not null,           -- ordinals of the steps that are ready at once
  plan            jsonb not null,
  created_at      timestamptz not null default tasker.now()
);

create table tasker.named_steps (
  named_step_uuid uuid primary key default tasker.uuid_v7(),
  name            text not null,
  system_name     text not null unique,
  created_at      timestamptz not null default tasker.now()
);

create table tasker.template_steps (
  template_id     int not null references tasker.templates,
  ordinal         int not null,
  name            text not null,
  named_step_uuid uuid not null references tasker.named_steps,
  step_type       text not null,
  handler         text not null,
  is_static       boolean not null,
  unmet           int not null,
  max_attempts    int not null,
  retryable       boolean not null,
  timeout_ms      bigint,
  on_worker_lost  text not null,
  parents         int[] not null,           -- ordinals; tasker.results_of_ancestors finds all ancestors
  primary key (template_id, ordinal)
);

-- Derived from `parents` of template_steps, so a foreign key to the template would only cost time.
create table tasker.template_edges (
  template_id  int not null,
  from_ordinal int not null,
  to_ordinal   int not null,
  primary key (template_id, from_ordinal, to_ordinal)
);

-- Hot. `total` = done + failed + cancelled + active + retrying + pending; pending is the remainder; `held` of the
-- pending are ready but wait for room in the queue. Terminal states set `complete`.
create table tasker.tasks (
  task_uuid       uuid primary key,
  named_task_uuid uuid not null,
  namespace_id    int not null,
  template_id     int not null,
  state           text not null check (state in ('pending', 'initializing', 'enqueuing_steps', 'steps_in_process',
    'evaluating_results', 'waiting_for_dependencies', 'waiting_for_retry', 'blocked_by_failures', 'complete', 'error',
    'cancelled', 'resolved_manually')),
  complete        boolean not null default false,
  priority        int not null default 0,
  sort_key        int not null default 1,
  graph_version   int not null default 0,
  next_seq        int not null,
  total           int not null,
  done            int not null default 0,
  failed          int not null default 0,
  cancelled       int not null default 0,
  active          int not null default 0,
  retrying        int not null default 0,
  held            int not null default 0,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  completed_at    timestamptz,
  waiter          uuid,                     -- the client notified of its end, on its own channel
  troubled        boolean not null generated always as (complete and state <> 'complete') stored,
  waits           boolean not null generated always as   -- open or not: for room, a retry, an operator
    (active = 0 and (held > 0 or retrying > 0 or state = 'blocked_by_failures')) stored,
  trouble         text generated always as (case when complete and state <> 'complete' then state end) stored
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0.05);
-- for lists, and for the sweeps over all open tasks. `complete` changes once, so other updates stay HOT.
create index tasks_open on tasker.tasks (task_uuid) where not complete;
-- for the sweeps (sweep_v1): open tasks under way, however many others wait. `waits` changes when a task comes to rest
-- or continues, never with a step that is handed off.
create index tasks_under_way on tasker.tasks (task_uuid) where not complete and not waits;
-- for lists by state: tasks that ended in another state than complete. Not `state` itself, which changes with every
-- write.
create index tasks_by_trouble on tasker.tasks (trouble, task_uuid) where trouble is not null;
-- for prunable_v1 and prune_v1: ended tasks, by template and time. Its columns change only when the task ends.
create index tasks_ended on tasker.tasks (named_task_uuid, troubled, completed_at) where complete;
-- for lists of a template's tasks, in their order
create index tasks_of_template on tasker.tasks (named_task_uuid, task_uuid);

create table tasker.task_details (
  task_uuid             uuid primary key,
  identity_hash         text not null,
  correlation_id        uuid not null,
  parent_correlation_id uuid,
  context               jsonb not null,
  context_bytes         int not null,                      -- of the value itself: storage may be compressed
  initiator             text not null default 'unknown',
  source_system         text not null default 'unknown',
  reason                text not null default '',
  tags                  text[] not null default '{}',
  requested_at          timestamptz not null,
  cancel_reason         text
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create unique index idx_tasks_identity_hash on tasker.task_details (identity_hash);      -- duplicate submissions
create index idx_tasks_correlation_id on tasker.task_details (correlation_id);           -- look-up by correlation
-- for lists, in their order; a task without such a value costs nothing here
-- lists by initiator
create index tasks_by_initiator on tasker.task_details (initiator, task_uuid) where initiator <> 'unknown';
-- lists by source system
create index tasks_by_source on tasker.task_details (source_system, task_uuid) where source_system <> 'unknown';
create index tasks_by_tag on tasker.task_details using gin (tags) where cardinality(tags) > 0;   -- lists by tag

-- Hot. `unmet` = parents that are not satisfied yet. `claim_token` only grows and fences results, renewals and
-- checkpoints. `sort_key` counts the transitions so far (creation is 1).
create table tasker.workflow_steps (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  namespace_id       int not null,
  template_id        int not null,
  ordinal            int not null,
  name               text not null,
  state              text not null check (state in ('pending', 'enqueued', 'in_progress', 'enqueued_for_orchestration',
    'enqueued_as_error_for_orchestration', 'waiting_for_retry', 'complete', 'error', 'cancelled', 'resolved_manually')),
  unmet              int not null,
  attempts           int not null default 0,
  max_attempts       int not null,
  retryable          boolean not null,
  claim_token        bigint not null default 0,
  worker_uuid        uuid,
  started_at         timestamptz,
  deadline_at        timestamptz,
  due_at             timestamptz,
  hinted_at          timestamptz,
  hint_count         int not null default 0,
  sort_key           int not null default 1,
  created_at         timestamptz not null,
  updated_at         timestamptz not null
) with (fillfactor = 55, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0.05);
-- for expansion (parents by name), reading a task, the sweeps' join from open tasks
create unique index workflow_steps_of_task on tasker.workflow_steps (task_uuid, name);
-- for promotion (due_v1): only steps that wait for a retry have a due time, so other updates stay HOT
create index workflow_steps_due on tasker.workflow_steps (due_at) where due_at is not null;

-- Edges to steps that were created while the task ran. Those between static steps belong to the template; the view
-- tasker.workflow_step_edges shows both.
create table tasker.dynamic_edges (
  task_uuid      uuid not null,
  from_step_uuid uuid not null,
  to_step_uuid   uuid not null,
  name           text not null default 'dependency',
  primary key (task_uuid, from_step_uuid, to_step_uuid),
  check (from_step_uuid <> to_step_uuid)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

-- Written once each.
create table tasker.step_inputs (
  workflow_step_uuid uuid primary key,
  inputs             jsonb not null,
  bytes              int not null                          -- of the value itself, as below
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

create table tasker.step_results (
  task_uuid          uuid not null,
  ordinal            int not null,
  workflow_step_uuid uuid not null,
  name               text not null,
  result             jsonb not null,
  metadata           jsonb,
  bytes              int not null,                         -- of the result itself: storage may be compressed
  created_at         timestamptz not null,
  primary key (task_uuid, ordinal, workflow_step_uuid)     -- a claim reads the ancestors' results by ordinal
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

create table tasker.step_failures (
  failure_id         bigint generated always as identity primary key,
  task_uuid          uuid not null,
  workflow_step_uuid uuid not null,
  attempt            int not null,
  claim_token        bigint not null,
  worker_uuid        uuid,
  error              jsonb not null,
  created_at         timestamptz not null
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create index step_failures_of_step on tasker.step_failures (task_uuid, workflow_step_uuid);   -- attempt history
create index step_failures_by_time on tasker.step_failures (created_at);                 -- failure bursts

create table tasker.step_checkpoints (
  workflow_step_uuid uuid primary key,
  checkpoint         jsonb not null,
  bytes              int not null,
  updated_at         timestamptz not null
) with (fillfactor = 50);

-- History: one row for each write. `path` is the states passed through, one letter each (tasker.path_code), the first
-- being the previous state; `sort_key` is that of the last, which no other row of the same subject has. The order of
-- columns avoids padding. Readers use the views: tasker.task_transition_log and tasker.step_transition_log show these
-- rows with the names of the states, tasker.task_transitions and tasker.workflow_step_transitions a row for each
-- transition, tasker.workflow_step_result_audit the author of each stored result.
create table tasker.task_moves (
  created_at     timestamptz not null,
  task_uuid      uuid not null,
  processor_uuid uuid,
  sort_key       int not null,
  path           text not null,
  metadata       jsonb
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create index task_moves_of_task on tasker.task_moves (task_uuid);                        -- history of a task

create table tasker.step_moves (
  created_at         timestamptz not null,
  claim_token        bigint not null,
  execution_time_ms  bigint,
  workflow_step_uuid uuid not null,
  worker_uuid        uuid,
  sort_key           int not null,
  attempt            int not null,
  path               text not null,
  metadata           jsonb
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create index step_moves_of_step on tasker.step_moves (workflow_step_uuid);               -- history of a step

-- Refused results, stored as evidence (verdict other than accepted).
create table tasker.refused_results (
  id                 bigint generated always as identity primary key,
  task_uuid          uuid,
  workflow_step_uuid uuid not null,
  claim_token        bigint,
  worker_uuid        uuid,
  verdict            text not null,
  detail             jsonb,
  created_at         timestamptz not null
);
create index refused_results_of_task on tasker.refused_results (task_uuid);              -- history of a task

-- Ready steps beyond the enqueue window, released by rank (priority with ageing, rotated over tasks).
create table tasker.ready_backlog (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  namespace_id       int not null,
  rank               double precision not null,
  paused             boolean not null default false   -- by a pause of less than its namespace (tasker.mark_held)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index ready_backlog_next on tasker.ready_backlog (namespace_id, rank) where not paused;   -- backlog_v1
create index ready_backlog_paused on tasker.ready_backlog (namespace_id) where paused;           -- paused_v1, depth_v1

-- Pauses: of a namespace, or in it of one template (every version), one step of a template, or one task; or of an
-- orchestration queue, from which no process takes messages then. Empty in most systems, and then only checked to be
-- empty (tasker.paused_of).
create table tasker.pauses (
  pause_id     int generated always as identity primary key,
  namespace_id int,
  template     text,
  step         text check (step is null or template is not null),
  task_uuid    uuid,
  queue        text,
  actor        text not null,
  reason       text not null,
  paused_at    timestamptz not null,
  check (num_nonnulls(namespace_id, queue) = 1 and (queue is null or num_nonnulls(template, task_uuid) = 0)),
  unique nulls not distinct (namespace_id, template, step, task_uuid, queue)
);

-- The log of pauses: actor, action, target, reason.
create table tasker.pause_log (
  id           bigint generated always as identity primary key,
  action       text not null check (action in ('pause', 'resume')),
  target       text not null,
  actor        text not null,
  reason       text not null,
  created_at   timestamptz not null
);
create index on tasker.pause_log (target, created_at);   -- failure_bursts_v1, queue_open_since

-- The number of enqueued steps of a namespace, and of steps that ever left the queue (for its drain rate), in shards so
-- that writers do not wait for each other.
create table tasker.enqueue_counters (
  namespace_id int not null,
  shard        int not null,
  enqueued     bigint not null default 0,
  taken        bigint not null default 0,
  primary key (namespace_id, shard)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

-- The registry of processes, present and past. The lease is this row; data written once are in worker_callables.
-- `unserved` lists the steps ("template:ordinal") that this worker took and could not resolve.
create table tasker.workers (
  worker_uuid  uuid primary key,
  kind         text not null check (kind in ('worker', 'orchestrator')),
  name         text,
  host         text not null,
  pid          int not null,
  version      text not null,
  namespaces   text[] not null,
  unserved     text[] not null default '{}',
  concurrency  int not null,
  backend      text,                            -- the messaging provider that it uses
  in_hand      int not null default 0,          -- steps, as of the last heartbeat
  beat_at      timestamptz not null,
  lease_until  timestamptz not null,
  asleep       boolean not null default false,
  started_at   timestamptz not null,
  draining_at  timestamptz,
  stopped_at   timestamptz
) with (fillfactor = 50);
-- wake_v1: without a day's stopped ones
create index workers_present on tasker.workers (worker_uuid) where stopped_at is null;

-- The names of the handlers that a worker has loaded. A custom resolver may find more.
create table tasker.worker_callables (
  worker_uuid  uuid primary key references tasker.workers on delete cascade,
  callables    text[] not null
);

-- Steps that a worker could not resolve and released (rule 16). Valid while the step still has this token.
create table tasker.unserved_steps (
  workflow_step_uuid uuid primary key,
  claim_token        bigint not null,
  callable           text not null,
  since              timestamptz not null
);

create table tasker.poison_messages (
  id         bigint generated always as identity primary key,
  queue_name text not null,
  msg_id     bigint,
  message    jsonb,
  reason     text not null,
  moved_at   timestamptz not null default tasker.now()
);

-- Faults found and repaired by sweeps, by kind; stays 0 in a healthy system.
create table tasker.repairs (
  kind     text primary key,
  repaired bigint not null default 0,
  last_at  timestamptz not null
);

-- The last turn of each kind of work that one process at a time does for all (tasker.take_turn_v1), and the position at
-- which the next one continues (find_waiting_v1, repair_v1).
create table tasker.turns (
  kind     text primary key,
  taken_at timestamptz not null,
  position uuid                -- the last row of the slice before; null: begin
) with (fillfactor = 50);

-- Rows of one write, passed in arrays between the functions.
create type tasker.given_change as (          -- a requested change
  step_uuid uuid, task_uuid uuid, kind text, token bigint, delay_ms bigint, duration_ms bigint, result jsonb,
  metadata jsonb, error jsonb, note jsonb, expand jsonb, graph_version int,
  worker_uuid uuid                            -- the worker with the claim of this token; null: none, or any
);
create type tasker.judged_change as (         -- the verdict on a change, from the step's row under its lock
  step_uuid uuid, task_uuid uuid, kind text, verdict text, from_state text, path text, to_state text, token bigint,
  attempt int, sort_key int, unmet int, template_id int, ordinal int, namespace_id int, name text, worker_uuid uuid,
  priority int, delay_ms bigint, duration_ms bigint, result jsonb, metadata jsonb, error jsonb, note jsonb
);
create type tasker.judgement as (   -- the whole of a write; a flag is true if it applies to one of the changes
  changes tasker.judged_change[], refused boolean, grows boolean, unserved boolean, fails boolean, drops boolean,
  waits boolean, runs boolean, unheld boolean, dequeued boolean
);
create type tasker.task_change as (   -- increments of a task's counters, and the number of steps that became ready
  task_uuid uuid, done int, failed int, cancelled int, active int, retrying int, held int, started int
);
create type tasker.ready_step as (            -- a step that lost parents or is to run (again)
  step_uuid uuid, task_uuid uuid, namespace_id int, template_id int, ordinal int, name text, priority int, met int,
  ready boolean, path text, from_state text, token bigint, attempt int, sort_key int, moved boolean
);
create type tasker.placed_step as (           -- with its place: claim, enqueue, hold or wait
  step_uuid uuid, task_uuid uuid, namespace_id int, template_id int, ordinal int, name text, priority int, met int,
  place text, path text, from_state text, token bigint, attempt int, sort_key int, moved boolean, timeout_ms bigint,
  held_rank int, paused boolean
);

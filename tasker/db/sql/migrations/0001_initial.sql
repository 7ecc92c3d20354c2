-- The tables of Tasker, in sections: templates; tasks and steps; history; queues; processes; schedules; domain events;
-- dead letters; operators; and the row types that functions pass to each other.
--
-- Two tables are updated with every step: `tasks` and `workflow_steps`. They contain only columns that change
-- or guard a change, have a low fillfactor, and no index on a column that most writes change, so that their
-- updates stay HOT. What is written once is in tables beside them. Tables that grow with the number of tasks
-- have no foreign keys.


-- ==== Functions that the tables need ====

-- The current time: a test sets `tasker.now`; otherwise it is the transaction's time.
create function tasker.now() returns timestamptz language sql stable parallel safe as $$
  select coalesce(nullif(current_setting('tasker.now', true), '')::timestamptz, pg_catalog.now())
$$;

-- Time-ordered identifiers (UUID version 7) on every supported server.
do $do$
begin
  if current_setting('server_version_num')::int >= 180000 then
    create function tasker.uuid_v7() returns uuid language sql volatile parallel safe as
      'select pg_catalog.uuidv7()';
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

-- A step's identifier is its task's with the last 24 bits set to the step's number, so the steps of a task
-- are adjacent in every index, in the order of their creation, and edges need no look-up. Task identifiers
-- end in 24 zero bits.
create function tasker.step_uuid(p_task uuid, p_seq int) returns uuid language sql immutable parallel safe as $$
  select (left(p_task::text, 30) || lpad(to_hex(p_seq), 6, '0'))::uuid
$$;


-- ==== Templates ====

-- Namespaces: each has its own queue of steps.
create table tasker.task_namespaces (
  namespace_id        int generated always as identity primary key,
  task_namespace_uuid uuid not null default tasker.uuid_v7(),
  name                text not null unique,
  created_at          timestamptz not null default tasker.now(),
  mended_at           timestamptz not null default '-infinity',  -- last check by repair_v1
  marks_after         uuid,  -- last backlogged step whose `paused` agrees with the pauses; null: all agree
  -- its steps have no queue: each claim takes the first ones of the backlog (tasker.order_namespace)
  ordered             boolean not null default false,
  fair_default        float8   -- weight of flows without one of their own, where steps are claimed in turn over flows
);

-- Names and versions of templates, each with its current plan.
create table tasker.named_tasks (
  named_task_uuid   uuid primary key default tasker.uuid_v7(),
  namespace_id      int not null references tasker.task_namespaces,
  name              text not null,
  version           text not null,
  description       text,
  identity_strategy varchar(20) not null default 'strict',  -- when two submissions are the same task
  metadata          jsonb not null default '{}',
  template_id       int,   -- the current plan; null only during its registration
  content           text,  -- hash of the author's text, without the fleet's defaults
  created_at        timestamptz not null default tasker.now(),
  updated_at        timestamptz not null default tasker.now(),
  unique (namespace_id, name, version)
);

-- Compiled templates by content. A task refers to one for its whole life, whatever is registered later.
create table tasker.templates (
  template_id     int generated always as identity primary key,
  hash            text not null unique,   -- of the plan, with the fleet's defaults
  namespace_id    int not null references tasker.task_namespaces,
  named_task_uuid uuid not null references tasker.named_tasks,
  step_count      int not null,
  static_count    int not null,           -- steps that every task has; the others are created while it runs
  roots           int[] not null,         -- ordinals of the steps that are ready at once
  fairness        text[],                 -- the place of the value in the input that names the flow of a task
  -- those of all its steps together; 2: its steps have the age of their task, 32: its tasks have a unique key,
  -- 64: its tasks have a debounce key,
  -- 512: the ends of its tasks are events, 1024: its steps start child tasks
  gates           int not null default 0,
  plan            jsonb not null,
  -- staleness limits, beside the plan, which is large
  lifecycle       jsonb generated always as (plan->'lifecycle') stored,
  created_at      timestamptz not null default tasker.now()
);

-- Names of steps, for readers of the schema; the engine uses template and ordinal.
create table tasker.named_steps (
  named_step_uuid uuid primary key default tasker.uuid_v7(),
  name            text not null,
  system_name     text not null unique,   -- namespace.template.step
  created_at      timestamptz not null default tasker.now()
);

-- The steps of a compiled template.
create table tasker.template_steps (
  template_id     int not null references tasker.templates,
  ordinal         int not null,
  name            text not null,
  named_step_uuid uuid not null references tasker.named_steps,
  step_type       text not null,
  handler         text not null,
  is_static       boolean not null,
  unmet           int not null,           -- number of parents
  max_attempts    int not null,
  retryable       boolean not null,
  timeout_ms      bigint,                 -- null: the default of the process that claims it
  max_in_process_minutes double precision,   -- staleness limit; null: that of the fleet
  on_worker_lost  text not null,
  parents         int[] not null,         -- ordinals; tasker.results_of_ancestors finds all ancestors
  -- What a step needs beside its parents, as bits (1: limits, 4: a time, 8: it waits, without a worker, 1024: for child
  -- tasks that it starts), and 16: its task may go on after a failure of it, 4096: it is a step of `finally`, 8192: its
  -- failure starts the compensation. A template and its tasks
  -- have those of all their steps together, so that a write of a task without any does not look further.
  gates           int not null default 0,
  max_elapsed_ms  bigint,                 -- from the start of the first attempt to that of the last
  delay_ms        bigint,                 -- from the moment the step becomes ready
  not_before      jsonb,                  -- {time}, or the place of a time: {input: [name...]} or {step, path: [name...]}
  requires        text[] not null default '{}',   -- tags that its worker must have
  slots           int not null default 1,         -- of its worker, while it runs
  wait            jsonb,                  -- for what it waits, as in the plan; null: a worker runs it
  undoes          int,                    -- ordinal of the step whose effect it undoes; null: it is no compensation
  primary key (template_id, ordinal)
);

-- The compensations of a template (begin_phase, is_late).
create index template_steps_undoing on tasker.template_steps (template_id) where undoes is not null;

-- The edges of a compiled template. Derived from `parents` of template_steps, so a foreign key would only
-- cost time.
create table tasker.template_edges (
  template_id  int not null,
  from_ordinal int not null,
  to_ordinal   int not null,
  primary key (template_id, from_ordinal, to_ordinal)
);

-- The events that the steps of a template declare, so that the write that ends a step knows the events to
-- write without reading the plan. Events delivered only within a process (`fast`) are not here.
create table tasker.template_events (
  template_id   int not null references tasker.templates,
  ordinal       int not null,
  number        int not null,             -- position in the step's list
  name          text not null,
  condition     text not null
    check (condition in ('success', 'failure', 'retryable_failure', 'permanent_failure', 'always')),
  delivery_mode text not null check (delivery_mode in ('durable', 'broadcast')),
  checked       boolean not null,         -- it has a schema: only a validated payload is published
  primary key (template_id, ordinal, number)
);


-- ==== Tasks and steps ====

-- Tasks. Hot. `total` = done + failed + cancelled + active + retrying + pending; pending is the remainder,
-- and `held` of the pending are ready but wait for room in the queue, `suspended` of the active are in progress
-- without a worker (step_waits). Terminal states set `complete`.
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
  sort_key        int not null default 1,   -- number of transitions so far; creation is 1
  graph_version   int not null default 0,   -- grows with each expansion
  next_seq        int not null,             -- number of the next step that is created (tasker.step_uuid)
  total           int not null,
  done            int not null default 0,
  failed          int not null default 0,
  cancelled       int not null default 0,
  active          int not null default 0,
  retrying        int not null default 0,
  held            int not null default 0,
  suspended       int not null default 0,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  completed_at    timestamptz,
  waiter          uuid,                     -- the client notified of its end, on its own channel
  gates           int not null default 0,   -- as its template's; 128: a step waits for its end (task_links), 256: it has a deadline, 512: its end is an event
  run_at          timestamptz,              -- its first steps wait until then; null: they began at once
  tenant          text,                     -- for whom it runs; null: nobody in particular
  -- partial: it is complete without some of its steps; the others: its effects are, were or could not be undone
  outcome         text check (outcome in ('partial', 'compensating', 'compensated', 'compensation_failed')),
  -- What runs or ran last after its other steps came to rest: c compensations, f `finally`; k and x: the same after a
  -- cancel.
  phase           "char" check (phase in ('c', 'k', 'f', 'x')),
  troubled        boolean not null generated always as (complete and state <> 'complete') stored,
  waits           boolean not null generated always as   -- open or not: for room, a retry, an event, an operator
    (active = suspended and (held > 0 or retrying > 0 or suspended > 0 or state = 'blocked_by_failures')) stored,
  trouble         text generated always as (case when complete and state <> 'complete' then state end) stored
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0.05);
-- for lists, and for the sweeps over all open tasks. `complete` changes once, so other updates stay HOT.
create index tasks_open on tasker.tasks (task_uuid) where not complete;
-- for the sweeps (sweep_v1): open tasks under way, however many others wait. `waits` changes when a task
-- comes to rest or continues, never with a step that is handed off.
create index tasks_under_way on tasker.tasks (task_uuid) where not complete and not waits;
-- for lists by state: tasks that ended in another state than complete. Not `state` itself, which changes with
-- every write.
create index tasks_by_trouble on tasker.tasks (trouble, task_uuid) where trouble is not null;
-- for prunable_v1 and prune_v1: ended tasks, by template and time. Its columns change only when the task
-- ends.
create index tasks_ended on tasker.tasks (named_task_uuid, troubled, completed_at) where complete;
-- for lists of a template's tasks, in their order
create index tasks_of_template on tasker.tasks (named_task_uuid, task_uuid);

-- for lists of tasks that ended with steps missing. An outcome is written once, with the end.
create index tasks_by_outcome on tasker.tasks (outcome, task_uuid) where outcome is not null;

-- The task of each value of a unique key, by template in all its versions: it runs, or another may take the key. The end
-- of a task writes nothing here; a submission looks whether it has ended, under the lock of the row (take_unique_keys).
create table tasker.unique_keys (
  namespace_id int not null,
  template     text not null,
  value        text not null,
  task_uuid    uuid not null,
  primary key (namespace_id, template, value)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index unique_keys_of_task on tasker.unique_keys (task_uuid);   -- prune_v1

-- The task of each value of a debounce key, by template in all its versions: until it begins, submissions of the same
-- key are merged into it (merge_debounced).
create table tasker.debounces (
  namespace_id   int not null,
  template       text not null,
  value          text not null,
  task_uuid      uuid not null,
  latest_at      timestamptz not null,        -- it begins by then, however many submissions follow
  submits        int not null default 0,      -- number of submissions of the task
  merged         text[] not null default '{}',  -- identities of the last ones
  moves_deadline boolean not null,            -- whether its deadline counts from its start
  primary key (namespace_id, template, value)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index debounces_of_task on tasker.debounces (task_uuid);   -- prune_v1, explain_v1

-- Lists of a tenant's tasks, in their order. A task without a tenant costs nothing here.
create index tasks_of_tenant on tasker.tasks (tenant, task_uuid) where tenant is not null;
-- The open tasks of a tenant, which a quota counts (admit_v1).
create index tasks_open_of_tenant on tasker.tasks (tenant, task_uuid) where tenant is not null and not complete;

-- Rate limiter of submissions (GCRA): for each limited client, template or tenant the time at which its bucket is full
-- again. A missing row means a full bucket. Changed in a transaction of its own, before that
-- of the submission (admit_v1).
create table tasker.submission_buckets (
  kind    text not null check (kind in ('client', 'template', 'tenant')),
  name    text not null,
  full_at timestamptz not null,
  primary key (kind, name)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- What a submission says of its task: written once.
create table tasker.task_details (
  task_uuid             uuid primary key,
  identity_hash         text not null,
  correlation_id        uuid not null,
  parent_correlation_id uuid,
  context               jsonb not null,     -- the input
  context_bytes         int not null,       -- of the value itself: storage may be compressed
  initiator             text not null default 'unknown',
  source_system         text not null default 'unknown',
  reason                text not null default '',
  tags                  text[] not null default '{}',
  trace                 jsonb,              -- W3C Trace Context of the submission: `traceparent`, `tracestate`
  requested_at          timestamptz not null,
  deadline_at           timestamptz,        -- when its open steps fail; null: never
  cancel_reason         text,
  callback_url          text                -- to which its end is posted; null: nowhere
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
-- duplicate submissions
create unique index idx_tasks_identity_hash on tasker.task_details (identity_hash);
-- look-up by correlation
create index idx_tasks_correlation_id on tasker.task_details (correlation_id);
-- lists by initiator, in their order; a task without one costs nothing here, as below
create index tasks_by_initiator on tasker.task_details (initiator, task_uuid) where initiator <> 'unknown';
-- lists by source system
create index tasks_by_source on tasker.task_details (source_system, task_uuid) where source_system <> 'unknown';
-- lists by tag
create index tasks_by_tag on tasker.task_details using gin (tags) where cardinality(tags) > 0;

-- Tasks that were started by a step of another task: `type: task`, or a submission within a handler. Written once, with
-- the child, and deleted with it. The parent is kept as long as an open task of it is (is_kept), so that both ends of a
-- link exist.
create table tasker.task_links (
  child_uuid  uuid primary key,
  parent_step uuid not null,
  parent_task uuid not null,
  token       bigint,            -- the claim token of the attempt, or of the wait for the child; null: not known
  index       int,               -- of the item, if the step starts a child for each one
  depth       int not null       -- 1: started by a task that no step started
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
-- lists of children, in their order; prune_v1
create index task_links_of on tasker.task_links (parent_task, child_uuid);

-- Steps of tasks. Hot.
create table tasker.workflow_steps (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  namespace_id       int not null,
  template_id        int not null,
  ordinal            int not null,
  name               text not null,
  state              text not null check (state in ('pending', 'enqueued', 'in_progress', 'enqueued_for_orchestration',
    'enqueued_as_error_for_orchestration', 'waiting_for_retry', 'complete', 'error', 'cancelled', 'resolved_manually')),
  unmet              int not null,                -- parents that are not satisfied yet
  attempts           int not null default 0,
  max_attempts       int not null,
  retryable          boolean not null,
  claim_token        bigint not null default 0,   -- only grows: fences results, renewals and checkpoints
  worker_uuid        uuid,                        -- the worker with the claim
  started_at         timestamptz,                 -- of the claim
  deadline_at        timestamptz,                 -- of the claim: a sweep ends it then
  due_at             timestamptz,                 -- when its retry or its start is due, for readers: the timer decides
  hinted_at          timestamptz,                 -- when a sweep last sent a wake-up for it
  hint_count         int not null default 0,
  sort_key           int not null default 1,      -- number of transitions so far; creation is 1
  created_at         timestamptz not null,
  updated_at         timestamptz not null,
  -- The task goes on without it: c (continue), o (optional), k (skip_cascade) and h (run) failed, s was skipped.
  -- Whatever waits for it does not wait any more (step_satisfies).
  settled            "char" check (settled in ('c', 'o', 'k', 'h', 's'))
) with (fillfactor = 55, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0.05);
-- for expansion (parents by name), reading a task, the sweeps' join from open tasks
create unique index workflow_steps_of_task on tasker.workflow_steps (task_uuid, name);

-- When something happens by itself: one row for each step that waits for a time. It is written and deleted by the write
-- that changes the step, under the lock of its task, so a row exists if and only if its step waits: `r` until its retry
-- is due (waiting_for_retry), `b` until it may begin (pending, without unmet parents, and not in the backlog). The expiry
-- of a task (`x`) remains when the task begins or ends, and does nothing then. A task that gives way to others under a
-- limit of tasks (`c`) is cancelled as soon as it is free, and so is a child task whose parent step does not wait for it
-- any more (`p`). The deadline of a task (`d`) exists while the task is open
-- and its deadline has not passed. A schedule that will do something has a timer, too (`s`), and so has a suspended
-- step whose wait ends at a time (`w`). An open approval has timers of its next reminder (`m`) and of its escalation (`e`).
create table tasker.timers (
  subject   uuid not null,     -- the step; for an expiry, a cancel and a deadline the task, for `s` the schedule
  kind      "char" not null check (kind in ('r', 'b', 'x', 'c', 'd', 's', 'w', 'm', 'e', 'p')),
  due_at    timestamptz not null,
  task_uuid uuid check ((task_uuid is null) = (kind = 's')),
  token     bigint not null,   -- the step's claim token: a timer that was read before it changed moves nothing
  primary key (subject, kind)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index timers_due on tasker.timers (due_at);   -- due_v1: what is due, and when the next one is

-- What suspended steps wait for: in progress without a worker, a lease, a message, or a place in the queue. A step has an
-- open wait if and only if it is suspended, and it is that of its claim token: any change of the step grows the token
-- and ends the wait in the same write (end_waits). Ended waits are kept with their task, as the record.
create table tasker.step_waits (
  workflow_step_uuid uuid not null,
  token        bigint not null,            -- the step's claim token: ends the wait with it
  nth          int not null,               -- of the waits of one step, of which the first that ends counts
  task_uuid    uuid not null,
  kind         "char" not null check (kind in ('w', 'e', 'h', 'a', 'c')),   -- time, event, event for a handler, persons, children
  since        timestamptz not null,
  until        timestamptz,                -- when it ends by itself, with the step's timer; null: never
  namespace_id int,                        -- of an event and of an approval
  event        text,                       -- which event it waits for
  key          text,                       -- its key; '': one without a key; null: no key is where the wait looks for it
  -- false: events that were there before it are still to be looked for, or the children are still to be planned
  probed       boolean not null default true,
  ended_at     timestamptz,
  outcome      text check ((outcome is null) = (ended_at is null)),
  detail       jsonb,                      -- of a handler: schema of the payload, on_timeout; of an approval: number
                                           -- of reminders, escalated_at
  approvers    text[] check ((approvers is null) = (kind <> 'a')),   -- who may decide (tasker.approvers_of)
  primary key (workflow_step_uuid, token, nth)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index step_waits_open on tasker.step_waits (kind, task_uuid) where ended_at is null;   -- lists of tasks
create index step_waits_of_task on tasker.step_waits (task_uuid);   -- cancel_v1, prune_v1, waiting_for
-- unmatched_v1: the waits of an event, and those that have not looked for theirs
create index step_waits_for_event on tasker.step_waits (namespace_id, event, key)
  where ended_at is null and event is not null;
-- unmatched_v1, due_v1
create index step_waits_unprobed on tasker.step_waits (since)
  where not probed and ended_at is null and kind <> 'c';
create index step_waits_unplanned on tasker.step_waits (since)   -- child_work_v1, due_v1
  where not probed and ended_at is null and kind = 'c';

-- Events that were sent to steps that wait for them. An event and the wait for it may commit in any order, also at the
-- same moment: whoever commits looks for the other afterwards, and what was not looked at is in an index of its own
-- (`routed_at`, `probed`), so that a crash in between loses nothing.
create table tasker.incoming_events (
  event_uuid   uuid primary key,
  namespace_id int not null,
  name         text not null,
  key          text not null,              -- '': none
  payload      jsonb not null,
  bytes        int not null,               -- of the payload itself
  exclusive    boolean not null,           -- one wait takes it; otherwise every wait of its name and key
  dedupe_id    text,                       -- of the sender: a second event with it is dropped
  sent_by      text not null,
  sent_at      timestamptz not null,
  expires_at   timestamptz not null,       -- from then on no wait takes it, and it is deleted
  routed_at    timestamptz,                -- when waits were first looked for; null: to do
  taken_by     uuid                        -- the step that took an exclusive one
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- send_event_v1
create unique index incoming_events_once on tasker.incoming_events (namespace_id, name, dedupe_id)
  where dedupe_id is not null;
-- unmatched_v1: the events of a wait; and lists
create index incoming_events_of_key on tasker.incoming_events (namespace_id, name, key, event_uuid)
  where taken_by is null;
-- unmatched_v1, due_v1
create index incoming_events_unrouted on tasker.incoming_events (event_uuid) where routed_at is null;
create index incoming_events_by_expiry on tasker.incoming_events (expires_at);   -- prune_incoming_events_v1

-- What became of an event at a wait: it was taken (the first one ends a wait, unless it collects), or its payload did
-- not fit. Deleted with the task.
create table tasker.wait_events (
  workflow_step_uuid uuid not null,
  token      bigint not null,
  event_uuid uuid not null,
  nth        int not null,                 -- of the waits of the step: what one refuses, another one may take
  task_uuid  uuid not null,
  at         timestamptz not null,
  problem    text,                         -- why it was refused; null: it was taken, by no other one of the step
  primary key (workflow_step_uuid, token, event_uuid, nth)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create index wait_events_of_task on tasker.wait_events (task_uuid);   -- prune_v1
create index wait_events_of_event on tasker.wait_events (event_uuid);   -- prune_incoming_events_v1

-- Steps that wait for child tasks, one row for each claim token. The children are those of its items; their template
-- is chosen once. The row is locked to start children, to count their ends, and to close it, never by a child.
create table tasker.fan_outs (
  workflow_step_uuid uuid not null,
  token        bigint not null,        -- of the step's wait
  task_uuid    uuid not null,
  template_id  int not null,           -- of the children
  depth        int not null,           -- of the children
  is_list      boolean not null,       -- the step has `for_each`
  collects     boolean not null,       -- the result has the outputs of the children
  total        int not null,
  max_parallel int not null,
  tolerated    int not null,           -- failures with which the step is still complete
  started      int not null default 0, -- items from the first on that are not pending any more
  running      int not null default 0,
  succeeded    int not null default 0,
  failed       int not null default 0,
  output_bytes bigint not null default 0,
  -- o: open; s: too many children failed, none is started any more; c: closed, the step has ended or waits anew
  state        "char" not null default 'o' check (state in ('o', 's', 'c')),
  look_at      timestamptz not null default '-infinity',   -- nothing is started before, as the task is paused
  opened_at    timestamptz not null,
  ended_at     timestamptz,
  -- children can be started, or the step can end
  due          boolean not null generated always as (state = 'o' and started < total and running < max_parallel
    or state <> 'c' and running = 0 and (state = 's' or started = total)) stored,
  primary key (workflow_step_uuid, token),
  check (started = running + succeeded + failed and started <= total)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index fan_outs_due on tasker.fan_outs (look_at) where due;   -- child_work_v1, due_v1
create index fan_outs_open on tasker.fan_outs (workflow_step_uuid) where state <> 'c';   -- metrics
create index fan_outs_of_task on tasker.fan_outs (task_uuid);   -- prune_v1

-- The items of fan-outs, in the order of their list.
create table tasker.fan_out_items (
  workflow_step_uuid uuid not null,
  token     bigint not null,
  index     int not null,
  state     "char" not null default 'w' check (state in ('w', 'r', 'o', 'f')),   -- waits, runs, succeeded, failed
  task_uuid uuid,                      -- the child; null: not started, or it could not be
  input     jsonb,                     -- of the child; null once it is started
  output    jsonb,
  error     jsonb,
  primary key (workflow_step_uuid, token, index)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

-- The ends of child tasks that are not counted yet: appended by the last write of the child, so that no child waits
-- for the row of the fan-out. Mostly empty.
create table tasker.child_ends (
  end_id      bigint generated always as identity primary key,
  parent_step uuid not null,
  token       bigint not null,
  index       int not null,
  child_uuid  uuid not null,
  ok          boolean not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index child_ends_of on tasker.child_ends (parent_step, token);   -- child_work_v1, fan_out_v1

-- The number of children that steps below a task have started or will start, by that task, which has no parent itself.
create table tasker.task_families (
  root_uuid   uuid primary key,
  descendants int not null
) with (fillfactor = 50);
-- lists of approvals: those that somebody may decide, and all in the order of their requests
create index step_waits_by_approver on tasker.step_waits using gin (approvers)
  where ended_at is null and approvers is not null;
-- lists of approvals
create index step_waits_of_persons on tasker.step_waits (since, workflow_step_uuid)
  where ended_at is null and approvers is not null;

-- The votes on approvals: who decided what and when, and how they proved who they are. They are never changed, and are
-- deleted with their task.
create table tasker.approval_votes (
  workflow_step_uuid uuid not null,
  token      bigint not null,
  subject    text not null,
  task_uuid  uuid not null,
  decision   text not null check (decision in ('approved', 'rejected')),
  form       jsonb not null,
  comment    text not null,
  via        text not null,                -- api, page, link, program
  proof      text,                         -- how a server knows the person: jwt, api_key, link; null: it does not
  voted_at   timestamptz not null,
  primary key (workflow_step_uuid, token, subject)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create index approval_votes_of_task on tasker.approval_votes (task_uuid);   -- prune_v1


-- ==== Limits ====

-- A limit on what runs at the same time, or on how many attempts begin in a time, by its name: of a step of a template in
-- all its versions, of a template, of a namespace; or a limit of a configuration, shared by all templates that name it. Rules are
-- never deleted: a few rows.
create table tasker.limit_rules (
  rule_id     int generated always as identity primary key,
  name        text not null unique,
  max_running int,                 -- for each value of the key; null: no limit
  rate        float8,              -- attempts per second for each value of the key
  burst       float8,              -- attempts that may begin at once after a pause
  of_tasks    boolean not null default false,   -- whole tasks have its permits, not steps
  on_limit    text not null default 'wait' check (on_limit in ('wait', 'cancel_new', 'cancel_running')),   -- of tasks
  changed_at  timestamptz not null default tasker.now(),
  declared_at timestamptz          -- of a configuration: when the newest file that names it was changed
);

-- The limits of the steps of a compiled template; ordinal -1: that of its tasks, which each of their steps has first.
create table tasker.template_limits (
  template_id int not null,
  ordinal     int not null,
  nth         int not null,
  rule_id     int not null references tasker.limit_rules,
  key         jsonb,               -- the place of the key's value: {input: [name...]} or {step, path: [name...]}; null: one for all
  primary key (template_id, ordinal, nth)
);

-- Steps that wait for a permit: pending, without unmet parents, and neither in the backlog nor with a timer. They are
-- written and deleted as rows of the backlog are, under the lock of their task. A step waits for one limit at a time.
create table tasker.limit_waiters (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  rule_id            int not null,
  value              text not null,
  rank               float8 not null,  -- as in ready_backlog
  several            boolean not null  -- it has other limits, too
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- grant_permits: the next of a key; and from one key to the next
create index limit_waiters_next on tasker.limit_waiters (rule_id, value, rank, workflow_step_uuid);

-- The permits of limits: of steps that are in the queue or the backlog, run, or have a result to be processed. What runs
-- under a key is counted from these rows, never stored as a number. A permit of a rate ends with the claim, if its rule
-- has no max_running, too; that of a task with its end.
create table tasker.limit_permits (
  subject    uuid not null,            -- the step, or the task
  rule_id    int not null,
  value      text not null,
  granted_at timestamptz not null,
  claimed    boolean not null default false,   -- of a rule with a rate and max_running: a worker took the step
  primary key (subject, rule_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- free_permits
create index limit_permits_of_key on tasker.limit_permits (rule_id, value);

-- The keys of rates whose steps used tokens: the time at which all would be unused again (GCRA). None is as one in the
-- past. Changed under the lock of the key.
create table tasker.limit_buckets (
  rule_id int not null,
  value   text not null,
  full_at timestamptz not null,
  primary key (rule_id, value)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Keys at which the timekeeper has to look, and when (grant_noted): written by those that may not wait for a key, and
-- where steps wait for the next token. Mostly empty.
create table tasker.limit_notes (
  rule_id int not null,
  value   text not null,
  due_at  timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 100);
create index limit_notes_due on tasker.limit_notes (due_at);   -- grant_noted
create index limit_notes_of_key on tasker.limit_notes (rule_id, value);   -- note_keys

-- Edges to steps that were created while the task ran. Those between static steps belong to the template; the
-- view tasker.workflow_step_edges shows both.
create table tasker.dynamic_edges (
  task_uuid      uuid not null,
  from_step_uuid uuid not null,
  to_step_uuid   uuid not null,
  name           text not null default 'dependency',
  primary key (task_uuid, from_step_uuid, to_step_uuid),
  check (from_step_uuid <> to_step_uuid)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

-- Inputs of steps that were created while the task ran (of batch workers): written once.
create table tasker.step_inputs (
  workflow_step_uuid uuid primary key,
  inputs             jsonb not null,
  bytes              int not null           -- of the value itself: storage may be compressed
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

-- Results of steps. A claim reads the results of its ancestors by ordinal, hence the primary key.
create table tasker.step_results (
  task_uuid          uuid not null,
  ordinal            int not null,
  workflow_step_uuid uuid not null,
  name               text not null,
  result             jsonb not null,
  metadata           jsonb,
  bytes              int not null,          -- of the result itself: storage may be compressed
  created_at         timestamptz not null,
  primary key (task_uuid, ordinal, workflow_step_uuid)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

-- Failed attempts.
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
-- attempt history
create index step_failures_of_step on tasker.step_failures (task_uuid, workflow_step_uuid);
-- failure bursts
create index step_failures_by_time on tasker.step_failures (created_at);

-- The last checkpoint of a step: read by its next attempt.
create table tasker.step_checkpoints (
  workflow_step_uuid uuid primary key,
  checkpoint         jsonb not null,
  bytes              int not null,
  updated_at         timestamptz not null
) with (fillfactor = 50);

-- Locks that handlers take by name. A row stays for a week after it was held last, so that its token grows.
create table tasker.locks (
  name               text primary key,
  token              bigint not null,        -- of this holder, for other systems: higher than that of each earlier one
  workflow_step_uuid uuid not null,          -- these three: the claim that holds it
  claim_token        bigint not null,
  worker_uuid        uuid not null,
  taken_at           timestamptz not null,
  expires_at         timestamptz not null,
  released_at        timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index locks_by_expiry on tasker.locks (expires_at);   -- prune_locks_v1

-- Results of pure steps that later steps with the same key use in place of a call (`memoize`).
create table tasker.memos (
  template_id int not null,               -- these two: the step of a version of a template
  ordinal     int not null,
  key         text not null,              -- hash of what the result depends on
  result      jsonb not null,
  task_uuid   uuid not null,              -- that computed it
  stored_at   timestamptz not null,
  expires_at  timestamptz not null,
  primary key (template_id, ordinal, key)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
create index memos_by_expiry on tasker.memos (expires_at);   -- prune_memos_v1

-- Log lines of handlers. Written outside of the engine's transactions (tasker.report_v1), and never read by
-- them.
create table tasker.step_logs (
  workflow_step_uuid uuid not null,
  claim_token        bigint not null,
  line               int not null,          -- of the claim, from 1
  task_uuid          uuid not null,
  logged_at          timestamptz not null,
  attempt            int not null,
  level              smallint not null,     -- as in Python's logging: 10 debug, 20 info, 30 warning, 40 error
  logger             text not null,
  message            text not null,
  fields             jsonb,
  primary key (workflow_step_uuid, claim_token, line)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
-- lists of a task
create index step_logs_of_task on tasker.step_logs (task_uuid, logged_at);

-- The progress of the claim that reported last: valid for a step that runs under this token, and for no
-- other.
create table tasker.step_progress (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  claim_token        bigint not null,
  fraction           double precision check (fraction between 0 and 1),
  done               double precision,
  total              double precision,
  message            text,
  first_at           timestamptz not null,  -- of the claim's first report of progress: the start of estimates
  first_fraction     double precision,
  reported_at        timestamptz not null
) with (fillfactor = 50);
-- overview_v1: what was reported lately
create index step_progress_by_time on tasker.step_progress (reported_at);


-- ==== History ====
-- One row for each write. `path` is the states passed through, one letter each (tasker.path_code), the first
-- being the previous state; `sort_key` is that of the last, which no other row of the same subject has. The
-- order of columns avoids padding. Readers use the views: tasker.task_transition_log and
-- tasker.step_transition_log show these rows with the names of the states, tasker.task_transitions and
-- tasker.workflow_step_transitions a row for each transition, tasker.workflow_step_result_audit the author of
-- each stored result.

create table tasker.task_moves (
  created_at     timestamptz not null,
  task_uuid      uuid not null,
  processor_uuid uuid,
  sort_key       int not null,
  path           text not null,
  metadata       jsonb
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
-- history of a task
create index task_moves_of_task on tasker.task_moves (task_uuid);

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
-- history of a step
create index step_moves_of_step on tasker.step_moves (workflow_step_uuid);

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
-- history of a task
create index refused_results_of_task on tasker.refused_results (task_uuid);


-- ==== Queues ====

-- Ready steps beyond the enqueue window, released by rank (priority with ageing, rotated over tasks).
-- Unserved steps wait apart from the others, so that served steps are not blocked.
create table tasker.ready_backlog (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  namespace_id       int not null,
  rank               double precision not null,
  paused             boolean not null default false,   -- by a pause of less than its namespace (tasker.mark_held)
  unserved           text,  -- "template:ordinal" of a step that waits for a worker with its handler, not for room
  priority           int,   -- of its task, in an ordered namespace
  flow               text,  -- in a fair namespace: '=' and the value of its key
  ready_at           timestamptz not null default tasker.now()   -- since when it may be claimed, but for room
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- backlog_v1: the steps that wait for room, by rank, and the first of each unserved kind
create index ready_backlog_next on tasker.ready_backlog (namespace_id, unserved, rank) where not paused;
-- a hand-off: whether a more urgent step waits
create index ready_backlog_urgent on tasker.ready_backlog (namespace_id, priority)
  where priority is not null and not paused and unserved is null;
-- next_fair: the next flow, and its first steps
create index ready_backlog_flow on tasker.ready_backlog (namespace_id, flow, rank)
  where flow is not null and not paused and unserved is null;

-- Fairness: weights of flows, and which flow of a namespace had the last turn.
create table tasker.flow_weights (
  namespace_id int not null references tasker.task_namespaces,
  flow         text not null,
  weight       float8 not null,
  primary key (namespace_id, flow)
);
create table tasker.flow_turns (
  namespace_id int primary key references tasker.task_namespaces,
  after_flow   text not null default '',   -- the last one that had its whole share of the round
  round        bigint not null default 0,
  cut_flow     text,                       -- the one that had a part of it
  cut          int not null default 0      -- as many steps
) with (fillfactor = 50);
-- paused_v1, depth_v1
create index ready_backlog_paused on tasker.ready_backlog (namespace_id) where paused;

-- The number of enqueued steps of a namespace, and of steps that ever left the queue (for its drain rate), in
-- shards so that writers do not wait for each other.
create table tasker.enqueue_counters (
  namespace_id int not null,
  shard        int not null,
  enqueued     bigint not null default 0,
  taken        bigint not null default 0,
  primary key (namespace_id, shard)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

-- Pauses: of a namespace, or in it of one template (every version), one step of a template, or one task; or
-- of an orchestration queue, from which no process takes messages then. Empty in most systems, and then only
-- checked to be empty (tasker.paused_of).
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
-- failure_bursts_v1, queue_open_since
create index on tasker.pause_log (target, created_at);

-- Messages taken from a queue because they cannot be processed.
create table tasker.poison_messages (
  id         bigint generated always as identity primary key,
  queue_name text not null,
  msg_id     bigint,
  message    jsonb,
  reason     text not null,
  moved_at   timestamptz not null default tasker.now()
);


-- ==== Processes ====

-- The registry of processes, present and past. The lease is this row; the names of handlers, written once,
-- are in worker_callables.
create table tasker.workers (
  worker_uuid  uuid primary key,
  kind         text not null check (kind in ('worker', 'orchestrator')),
  name         text,
  host         text not null,
  pid          int not null,
  version      text not null,
  namespaces   text[] not null,
  unserved     text[] not null default '{}',    -- "template:ordinal" of steps that it claimed and could not resolve
  unreadable   int[] not null default '{}',     -- templates of a newer release, which it cannot read
  concurrency  int not null,
  backend      text,                            -- the messaging provider that it uses
  tags         text[] not null default '{}',    -- what it has that steps may require
  limits       jsonb,                           -- limits of its configuration: [{name, concurrency, rate, burst}]
  in_hand      int not null default 0,          -- in-flight claims, as of the last heartbeat
  beat_at      timestamptz not null,            -- last heartbeat
  lease_until  timestamptz not null,
  asleep       boolean not null default false,  -- it waits for a notification (wake_v1)
  started_at   timestamptz not null,
  draining_at  timestamptz,
  stopped_at   timestamptz
) with (fillfactor = 50);
-- wake_v1: without a day's stopped ones
create index workers_present on tasker.workers (worker_uuid) where stopped_at is null;

-- The names of the handlers that a worker has loaded. A custom resolver may find more.
create table tasker.worker_callables (
  worker_uuid  uuid primary key references tasker.workers on delete cascade,
  callables    text[] not null,
  lacking      text[] not null default '{}'   -- "handler resource": loaded, but it has no such resource
);

-- Steps that a worker could not resolve and released (rule 16). Valid while the step still has this token.
create table tasker.unserved_steps (
  workflow_step_uuid uuid primary key,
  claim_token        bigint not null,
  callable           text not null,
  since              timestamptz not null
);

-- Faults found and repaired by sweeps, by kind; stays 0 in a healthy system.
create table tasker.repairs (
  kind     text primary key,
  repaired bigint not null default 0,
  last_at  timestamptz not null
);

-- The last turn of each kind of work that one process at a time does for all (tasker.take_turn_v1), and the
-- position at which the next one continues (find_waiting_v1, repair_v1).
create table tasker.turns (
  kind     text primary key,
  taken_at timestamptz not null,
  position uuid,                            -- the last row of the slice before; null: begin
  after    text[],                          -- the same for limits: rule and value of the last key
  holder   uuid                             -- the timekeeper (kind `timers`): the process that watches the timers for all
) with (fillfactor = 50);


-- ==== Schedules ====

-- What submits tasks by itself: declared by a template, or created by an operator. Every change of a row raises its
-- `revision`, and a process that computed fires from an earlier one is refused (fire_schedule_v1). A schedule with
-- something to do has a timer of kind `s` (violations_v1).
create table tasker.schedules (
  schedule_uuid uuid primary key default tasker.uuid_v7(),
  namespace_id  int not null references tasker.task_namespaces,
  template      text not null,              -- name of the template
  name          text not null,
  version       text,                       -- of the template; null: the version registered last when it fires
  declared      boolean not null,           -- by that version of the template
  removed       boolean not null default false,   -- declared by an earlier version, and not by this one: it rests
  spec          jsonb not null,             -- what it is, as tasker/template/schedules.py stores it
  revision      bigint not null default 1,
  anchor_at     timestamptz not null,       -- fire times up to this one are done
  next_at       timestamptz,                -- the next fire time, for readers; null: none, or not computed yet
  paused        jsonb,                      -- actor, time and reason of its pause
  running       uuid[] not null default '{}',   -- tasks of fires and triggers that may be open
  catching_up   uuid[] not null default '{}',   -- tasks of missed fires and backfills that may be open
  last_fire_at  timestamptz,                -- the newest fire time with a task
  last_fired_at timestamptz,                -- when the last task was submitted
  created_at    timestamptz not null default tasker.now(),
  updated_at    timestamptz not null default tasker.now(),
  unique (namespace_id, template, name)
) with (fillfactor = 70);

-- The history of fires: at most one row, and so at most one task, for each fire time of a schedule.
create table tasker.schedule_fires (
  schedule_uuid uuid not null,
  fire_at       timestamptz not null,
  kind          text not null check (kind in ('schedule', 'missed', 'trigger', 'backfill')),
  outcome       text not null check (outcome in ('fired', 'queued', 'skipped', 'missed', 'refused')),
  task_uuid     uuid check ((task_uuid is not null) = (outcome = 'fired')),
  decided_at    timestamptz not null,
  detail        jsonb,                      -- actor of a trigger or backfill; the error; the span of missed fires
  primary key (schedule_uuid, fire_at)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
-- fire times that wait for their task
create index schedule_fires_queued on tasker.schedule_fires (schedule_uuid, fire_at) where outcome = 'queued';


-- ==== Domain events ====

-- The outbox: written by the transaction that accepts a result (write_events), one row for each event
-- declared for its outcome, also for events that are not published (`withheld` gives the reason). `event_id`
-- follows the order in which the events of a task were written; readers use the position, which an event gets
-- after its commit (place_events), so that an event written early and committed late is not missed. Kept
-- until prune_events_v1, independent of the task.
create table tasker.domain_events (
  event_id           bigint generated always as identity primary key,
  created_at         timestamptz not null,
  event_uuid         uuid not null,
  task_uuid          uuid not null,
  workflow_step_uuid uuid not null,         -- of the end of a task: the task
  correlation_id     uuid not null,
  namespace_id       int not null,
  sort_key           int not null,          -- of the step's or task's transition that caused it
  number             int not null,          -- among the events of this transition
  attempt            int not null,
  -- number of events that a handler itself published with the result; null: the event is declared by a template
  published_with     int,
  name               text not null,
  step_name          text not null,
  outcome            text not null check (outcome in ('success', 'retryable_failure', 'permanent_failure')),
  delivery_mode      text not null,
  fired_by           text not null,
  payload            jsonb,
  metadata           jsonb,                 -- added by a publisher
  withheld           text,
  check ((payload is null) = (withheld is not null))
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
-- never twice
create unique index domain_events_of_move on tasker.domain_events (workflow_step_uuid, sort_key, number);
-- one event
create unique index domain_events_by_id on tasker.domain_events (event_uuid);
-- events_v1
create index domain_events_withheld on tasker.domain_events (event_id) where withheld is not null;
-- lists of a task
create index domain_events_of_task on tasker.domain_events (task_uuid);
-- lists by correlation
create index domain_events_of_correlation on tasker.domain_events (correlation_id);
-- prune_events_v1
create index domain_events_by_time on tasker.domain_events (created_at);

-- The order in which events are read. A separate table, so that assigning a position writes two small rows
-- instead of rewriting a large one.
create table tasker.event_positions (
  position     bigint primary key,
  event_id     bigint not null,
  namespace_id int not null,
  name         text not null
);
-- events_v1
create unique index event_positions_of_event on tasker.event_positions (event_id);
-- events_v1
create index event_positions_by_name on tasker.event_positions (namespace_id, name, position);
create sequence tasker.domain_event_positions;

-- Events without a position: written with the event, removed by place_events.
create table tasker.unplaced_events (
  event_id bigint primary key
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The worker's part of the events of a result that waits for an orchestrator.
create table tasker.parked_events (
  workflow_step_uuid uuid primary key,
  task_uuid          uuid not null,
  claim_token        bigint not null,
  events             jsonb not null
);

-- The position of each subscriber, and the holder of its lease.
create table tasker.event_subscribers (
  name        text primary key,
  position    bigint not null,
  holder      uuid,
  lease_until timestamptz not null default '-infinity',
  stopped     jsonb,   -- actor, time and reason of its stop: no process reads for it meanwhile
  updated_at  timestamptz not null
) with (fillfactor = 50);

-- Events that a subscriber failed to process: retried when they are due, or left to an operator. The event is
-- stored here as it was read, so that it may be pruned meanwhile.
create table tasker.event_deliveries (
  subscriber text not null,
  event_uuid uuid not null,
  event      jsonb not null,
  attempts   int not null,
  due_at     timestamptz,                   -- null: given up
  error      text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (subscriber, event_uuid)
);
-- due_deliveries_v1
create index event_deliveries_due on tasker.event_deliveries (subscriber, due_at) where due_at is not null;
-- prune_events_v1
create index event_deliveries_by_time on tasker.event_deliveries (updated_at);

-- The time before which events were pruned: events of earlier results may be missing.
create table tasker.domain_events_pruned (
  before timestamptz not null
);


-- ==== Dead letters ====

create type tasker.dlq_reason as enum ('staleness_timeout', 'max_retries_exceeded', 'permanent_failure',
  'dependency_cycle_detected', 'worker_unavailable', 'manual_dlq', 'compensation_failed');
create type tasker.dlq_resolution_status as enum ('pending', 'manually_resolved', 'permanently_failed', 'cancelled');

-- Dead letters, tasks that need an operator: the state, time and reason, the investigator, and the findings.
-- An entry is a record: it never moves a task or a step. A task has at most one pending entry, and any number
-- of closed ones.
create table tasker.tasks_dlq (
  dlq_entry_uuid    uuid primary key default tasker.uuid_v7(),
  task_uuid         uuid not null,
  original_state    varchar(50) not null,      -- of the task, before the dead letter
  dlq_reason        tasker.dlq_reason not null,
  dlq_timestamp     timestamptz not null default tasker.now(),
  task_snapshot     jsonb,
  -- of the snapshot, which is large: lists and groups read only these
  namespace         text generated always as (task_snapshot->>'namespace') stored,
  template          text generated always as (task_snapshot->>'task_name') stored,
  fingerprints      text[] not null default '{}',   -- of the final failures of its steps
  resolution_status tasker.dlq_resolution_status not null default 'pending',
  resolution_notes  text,
  resolved_at       timestamptz,
  resolved_by       varchar(255),
  metadata          jsonb,
  created_at        timestamptz not null default tasker.now(),
  updated_at        timestamptz not null default tasker.now()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05,
        autovacuum_analyze_threshold = 10);
-- at most one pending entry of a task
create unique index idx_dlq_unique_pending_task on tasker.tasks_dlq (task_uuid) where resolution_status = 'pending';
-- the newest entry of a task
create index tasks_dlq_of_task on tasker.tasks_dlq (task_uuid, dlq_timestamp desc);
-- lists
create index tasks_dlq_by_time on tasker.tasks_dlq (dlq_timestamp desc);
-- lists of a namespace
create index tasks_dlq_by_namespace on tasker.tasks_dlq (namespace, dlq_timestamp desc, dlq_entry_uuid desc);
-- the investigation queue
create index tasks_dlq_pending on tasker.tasks_dlq (dlq_reason, dlq_timestamp, dlq_entry_uuid) include (namespace)
  where resolution_status = 'pending';
-- entries with the same failures
create index tasks_dlq_by_fingerprint on tasker.tasks_dlq using gin (fingerprints);
-- v_dlq_dashboard: all columns that it counts, without reading the entries, each of which has a snapshot
create index tasks_dlq_counted on tasker.tasks_dlq (dlq_reason, resolution_status, dlq_timestamp, resolved_at);

-- The number of dead letters ever created, and the time until they were resolved: entries are deleted with
-- their tasks, counters stay. Each transaction has a shard to itself.
create table tasker.dlq_counters (
  what   text not null,                     -- 'created', or an upper limit in hours of the time until resolution
  shard  int not null,
  number bigint not null default 0,
  hours  double precision not null default 0,
  primary key (what, shard)
) with (fillfactor = 50);

-- The number of compensations that ended, by their outcome. Each transaction has a shard to itself.
create table tasker.compensation_counters (
  outcome text not null check (outcome in ('compensated', 'compensation_failed')),
  shard   int not null,
  number  bigint not null default 0,
  primary key (outcome, shard)
) with (fillfactor = 50);

-- The staleness limits of the last process that searched: the views use the same limits as the search. One
-- row.
create table tasker.staleness_settings (
  one boolean primary key default true check (one),
  waiting_for_dependencies_minutes double precision not null default 60,
  waiting_for_retry_minutes        double precision not null default 30,
  steps_in_process_minutes         double precision not null default 30,
  task_max_lifetime_minutes        double precision not null default 1440,
  checkpoint_stall_minutes         double precision not null default 15
);
insert into tasker.staleness_settings default values;

-- Replays of dead letters with the same failure: the entries to reset, the rate, and the progress. The
-- progress is in these rows, so any process can continue a replay.
create table tasker.dlq_replays (
  replay_uuid     uuid primary key default tasker.uuid_v7(),
  state           text not null check (state in ('running', 'paused', 'complete', 'cancelled')),
  filter          jsonb not null,           -- the requested filter
  fingerprint     text,                     -- only steps with this failure are reset; null: every failed step
  rate_per_second double precision not null,
  actor           text not null,
  reason          text not null,
  total           int not null,
  replayed        int not null default 0,
  skipped         int not null default 0,
  created_at      timestamptz not null,
  paced_at        timestamptz not null,     -- time up to which the rate is used
  -- last turn: a locked or fast replay does not delay others
  looked_at       timestamptz not null default '-infinity',
  finished_at     timestamptz
);
-- replay_v1
create index dlq_replays_running on tasker.dlq_replays (created_at) where state = 'running';

-- The tasks of a replay, in its order; `outcome` is null until it is their turn.
create table tasker.dlq_replay_items (
  replay_uuid    uuid not null references tasker.dlq_replays,
  position       int not null,
  dlq_entry_uuid uuid not null,
  task_uuid      uuid not null,
  outcome        text check (outcome in ('replayed', 'skipped')),
  detail         text,
  primary key (replay_uuid, position)
);
-- replay_v1
create index dlq_replay_items_open on tasker.dlq_replay_items (replay_uuid, position) where outcome is null;
-- prune_v1
create index dlq_replay_items_of_task on tasker.dlq_replay_items (task_uuid);


-- ==== Operators ====

-- The audit log of operator actions, over HTTP or by a command. An action in one transaction has its row in
-- it, and the row of a refused or failed one is written after the rollback; an action of several transactions
-- has its row before the first.
create table tasker.operator_actions (
  action_uuid  uuid primary key default tasker.uuid_v7(),
  requested_at timestamptz not null,
  actor        text not null,
  -- how the actor was authenticated
  proof        text not null check (proof in ('disabled', 'jwt', 'api_key', 'os_user', 'link')),
  endpoint     text not null,               -- method and path, with names in place of identifiers; or the command
  path         text not null,               -- the requested path
  request_id   text not null,
  address      text,   -- of the client, or of the proxy before it; the host of a command
  status       int,    -- of the answer, or a command's exit code; null: ended before it was known
  -- why it was not carried out: a message, or the type of an error whose message may be secret
  refusal      text
);

-- Lists of tasks saved by users for all users. A few rows.
create table tasker.saved_views (
  name     text primary key check (length(name) between 1 and 60),
  address  text not null check (length(address) <= 2000),   -- the query string of the list
  saved_by text not null,
  saved_at timestamptz not null
);

-- Sessions of the web page. Whoever reads this table learns neither the identifiers nor the keys.
create table tasker.page_sessions (
  -- SHA-256 of the identifier in the browser's cookie
  session_hash bytea primary key check (length(session_hash) = 32),
  -- the API key or token, encrypted with a key that is derived from the identifier
  sealed       bytea not null,
  created_at   timestamptz not null,
  expires_at   timestamptz not null
);
-- removal of expired sessions
create index page_sessions_expiry on tasker.page_sessions (expires_at);


-- ==== Rows of one write, passed in arrays between the functions ====

-- A requested change of a step.
create type tasker.given_change as (
  step_uuid uuid, task_uuid uuid, kind text, token bigint, delay_ms bigint, duration_ms bigint, result jsonb,
  metadata jsonb, error jsonb, note jsonb, expand jsonb, graph_version int,
  worker_uuid uuid,                           -- the worker with the claim of this token; null: none, or any
  settled "char"
);
-- The verdict on a change, from the step's row under its lock.
create type tasker.judged_change as (
  step_uuid uuid, task_uuid uuid, kind text, verdict text, from_state text, path text, to_state text, token bigint,
  attempt int, sort_key int, unmet int, template_id int, ordinal int, namespace_id int, name text, worker_uuid uuid,
  priority int, delay_ms bigint, duration_ms bigint, result jsonb, metadata jsonb, error jsonb, note jsonb,
  settled "char"
);
-- The whole of a write; a flag is true if it applies to one of the changes.
create type tasker.judgement as (
  changes tasker.judged_change[], refused boolean, grows boolean, unserved boolean, fails boolean, drops boolean,
  waits boolean, runs boolean, unheld boolean, dequeued boolean,
  limited boolean,                           -- a task among them has steps with limits
  resumed boolean,                           -- a suspended step moves
  ahead boolean,                             -- a step that was never placed ends with its parent
  suspends boolean,                          -- a handler waits for an event from now on
  keeps_state boolean,                       -- a handler's state or event is to be stored
  reopened boolean                           -- an operator changes a step of a task in a phase
);
create type tasker.rest as (                 -- of a task: its next state, phase and outcome
  target text, phase "char", outcome text
);
-- Increments of a task's counters, and the number of steps that became ready.
create type tasker.task_change as (
  task_uuid uuid, done int, failed int, cancelled int, active int, retrying int, held int, started int,
  suspended int
);
-- A step that lost parents or is to run (again).
create type tasker.ready_step as (
  step_uuid uuid, task_uuid uuid, namespace_id int, template_id int, ordinal int, name text, priority int, met int,
  ready boolean, path text, from_state text, token bigint, attempt int, sort_key int, moved boolean
);
-- A ready step with its place: claim, enqueue, hold, suspend or wait.
create type tasker.placed_step as (
  step_uuid uuid, task_uuid uuid, namespace_id int, template_id int, ordinal int, name text, priority int, met int,
  place text, path text, from_state text, token bigint, attempt int, sort_key int, moved boolean, timeout_ms bigint,
  held_rank int, paused boolean,
  -- with place `hold`: it waits for this time, not for room; with `suspend`: when its wait ends by itself
  begins_at timestamptz,
  limited boolean         -- with place `hold`: it waits for a permit, not for room
);

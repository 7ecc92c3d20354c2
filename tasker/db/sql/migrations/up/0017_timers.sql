-- When something happens by itself: one row for each step that waits for a time. It is written and deleted by the write
-- that changes the step, under the lock of its task, so a row exists if and only if its step waits: `r` until its retry
-- is due (waiting_for_retry), `b` until it may begin (pending, without unmet parents, and not in the backlog). The expiry
-- of a task (`x`) remains when the task begins or ends, and does nothing then.
create table tasker.timers (
  subject   uuid not null,     -- the step; for an expiry the task
  kind      "char" not null check (kind in ('r', 'b', 'x')),
  due_at    timestamptz not null,
  task_uuid uuid not null,
  token     bigint not null,   -- the step's claim token: a timer that was read before it changed moves nothing
  primary key (subject, kind)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index timers_due on tasker.timers (due_at);   -- due_v1: what is due, and when the next one is
insert into tasker.timers (subject, kind, due_at, task_uuid, token)
select s.workflow_step_uuid, 'r', s.due_at, s.task_uuid, s.claim_token
from tasker.workflow_steps s where s.due_at is not null and s.state = 'waiting_for_retry';
-- `due_at` of a step remains for readers of the row; without an index a retry is a HOT update.
drop index tasker.workflow_steps_due;

-- The timekeeper: the process that watches the timers for all (kind `timers`).
alter table tasker.turns add column holder uuid;

-- Gates: conditions beside its parents that a step must meet before it starts, as bits (4: a time). A step has those of
-- its template step; a template and its tasks have those of all their steps together, so that a write of a task
-- without any does not look further.
alter table tasker.template_steps
  add column gates      int not null default 0,
  add column delay_ms   bigint,   -- from the moment the step becomes ready
  add column not_before jsonb;    -- {time}, or the place of a time: {input: [name...]} or {step, path: [name...]}
alter table tasker.templates add column gates int not null default 0;
alter table tasker.tasks
  add column gates  int not null default 0,
  add column run_at timestamptz;   -- its first steps wait until then; null: they began at once

alter type tasker.placed_step add attribute begins_at timestamptz;   -- with place `hold`: waits for this time, not for room

-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- True if a change with the token of the claim was accepted before, by the state that the step has now.
create or replace function tasker.kind_was_accepted(p_kind text, p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_kind in ('fail', 'ok') and p_state in ('complete', 'error', 'waiting_for_retry')
    or p_kind = 'retry' and p_state in ('complete', 'enqueued', 'error', 'pending', 'waiting_for_retry')
$$;

-- The fencing token of claims after a change.
create or replace function tasker.kind_token(p_kind text, p_token bigint, p_lost boolean) returns bigint
language sql immutable parallel safe as $$
  select p_token + case when p_kind in ('hold', 'promote', 'unhold') or p_kind in ('fail', 'ok', 'retry')
    and not p_lost then 0 else 1 end
$$;

-- The number of attempts after the change.
create or replace function tasker.kind_attempts(p_kind text, p_attempts int) returns int
language sql immutable parallel safe as $$
  select case when p_kind = 'ahead' then least(p_attempts, 2147483646) + 1 when p_kind in ('defer',
    'release', 'resume', 'snooze') then p_attempts - 1 when p_kind = 'reset' then 0 else p_attempts end
$$;

-- The path of a step whose worker parks its report for an orchestrator; null for other changes.
create or replace function tasker.parking_path(p_kind text) returns text
language sql immutable parallel safe as $$
  select case when p_kind = 'ok' then 'IO'
    when p_kind in ('fail', 'retry') then 'IX' end
$$;

-- True for the kinds of change marked in the table as `reports`.
create or replace function tasker.kind_reports(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind in ('fail', 'ok', 'retry')
$$;

-- True for the kinds of change marked in the table as `ends_claim`.
create or replace function tasker.kind_ends_claim(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind in ('defer', 'fail', 'ok', 'release', 'retry', 'snooze', 'suspend')
$$;

-- True for the kinds of change marked in the table as `stores_result`.
create or replace function tasker.kind_stores_result(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind in ('ahead', 'complete', 'ok')
$$;

-- True for the kinds of change marked in the table as `stores_failure`.
create or replace function tasker.kind_stores_failure(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind in ('expire', 'fail', 'retry')
$$;

-- True for the kinds of change marked in the table as `settles`.
create or replace function tasker.kind_settles(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind = 'fail'
$$;

-- True for the kinds of change marked in the table as `drops_result`.
create or replace function tasker.kind_drops_result(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind in ('fail', 'resolve')
$$;

-- True for the kinds of change marked in the table as `reopens`.
create or replace function tasker.kind_reopens(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind in ('complete', 'reset', 'resolve')
$$;

-- True for the kinds of change marked in the table as `needs_parents`.
create or replace function tasker.kind_needs_parents(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind = 'unhold'
$$;

-- True for the kinds of change marked in the table as `runs_ahead`.
create or replace function tasker.kind_runs_ahead(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind = 'ahead'
$$;

-- True for the kinds of change marked in the table as `notes_unserved`.
create or replace function tasker.kind_notes_unserved(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind = 'release'
$$;

-- True for the kinds of change marked in the table as `leaves_task`.
create or replace function tasker.kind_leaves_task(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind = 'release'
$$;

-- True for the kinds of change marked in the table as `suspends`.
create or replace function tasker.kind_suspends(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind = 'suspend'
$$;

-- True for the kinds of change marked in the table as `keeps_state`.
create or replace function tasker.kind_keeps_state(p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kind in ('resume', 'snooze', 'suspend')
$$;

-- The path of a step to this place, continued from the path that made it ready.
create or replace function tasker.placed_path(p_path text, p_place text) returns text
language sql immutable parallel safe as $$
  select p_path || case p_place
    when 'claim' then case when p_path like '%E' then 'I' else 'EI' end
    when 'enqueue' then case when p_path like '%E' then '' else 'E' end
    when 'hold' then case when p_path like '%P' then '' else 'P' end
    when 'suspend' then 'I'
    else '' end
$$;

-- The state of a step at this place; null if its state does not change.
create or replace function tasker.place_state(p_place text) returns text
language sql immutable parallel safe as $$
  select case p_place when 'claim' then 'in_progress' when 'enqueue' then 'enqueued' when 'hold'
    then 'pending' when 'suspend' then 'in_progress' end
$$;

-- The fencing token of claims of a step at this place.
create or replace function tasker.place_token(p_place text, p_token bigint) returns bigint
language sql immutable parallel safe as $$
  select p_token + case when p_place in ('claim', 'suspend') then 1 else 0 end
$$;

-- The number of attempts after the change.
create or replace function tasker.place_attempts(p_place text, p_attempts int) returns int
language sql immutable parallel safe as $$
  select case when p_place in ('claim', 'suspend') then least(p_attempts, 2147483646) + 1 else p_attempts end
$$;

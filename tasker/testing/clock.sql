-- Time of the engine in a database for tests: the server's time and an interval that tests move.
do $do$
begin
create schema if not exists tasker_testing;
create table if not exists tasker_testing.clock (moved interval not null);
insert into tasker_testing.clock select '0' where not exists (select from tasker_testing.clock);

create or replace function tasker.now() returns timestamptz language sql stable parallel safe as $$
  select pg_catalog.now() + (select moved from tasker_testing.clock)
$$;

-- Moves the time. Leases, timeouts of running attempts and turns move along, since no time has passed for what runs.
create or replace function tasker_testing.advance(p_by interval) returns void language plpgsql as $$
begin
  update tasker_testing.clock set moved = moved + p_by;
  update tasker.workers set lease_until = lease_until + p_by, beat_at = beat_at + p_by where stopped_at is null;
  update tasker.workflow_steps set deadline_at = deadline_at + p_by where deadline_at is not null;
  update tasker.turns set taken_at = taken_at + p_by;
  perform pg_notify('tasker_timers', '');
end
$$;

-- Milliseconds until the next timer; null: there is none.
create or replace function tasker_testing.next_timer_ms() returns float8 language sql as $$
  select extract(epoch from min(due_at) - tasker.now()) * 1000 from tasker.timers
$$;

-- Steps that a worker has or could take, timers that are due, and tasks that are about to begin.
create or replace function tasker_testing.busy() returns bigint language sql as $$
  select (select count(*) from tasker.workflow_steps s where s.state in ('enqueued', 'enqueued_for_orchestration',
      'enqueued_as_error_for_orchestration') or s.state = 'in_progress' and s.worker_uuid is not null)
    + (select count(*) from tasker.ready_backlog where not paused)
    + (select count(*) from tasker.timers where due_at <= tasker.now())
$$;

end
$do$

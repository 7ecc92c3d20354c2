-- Notifies waiting clients of the ends of tasks: one notification for each 200 tasks of a client (a payload is limited
-- to 8,000 bytes). Must run in a transaction of its own *after* the commit of the ends: the notified client reads the
-- row, and a notification holds a lock of the whole server until its transaction is on disk. The server drops a
-- notification without a listener.
-- p_waiters: {task: waiter}.
-- Returns: the number of notifications.
create or replace function tasker.notify_waiters_v1(p_waiters jsonb) returns int
language plpgsql
set search_path to pg_catalog, pg_temp
set jit to off
as $$
begin
  perform set_config('synchronous_commit', 'off', true);   -- none of this must reach the disk
  return (select count(pg_notify('tasker_done_' || n.waiter, n.tasks)) from (
    select w.waiter, string_agg(w.task, ',' order by w.nth) as tasks
    from (select e.key as task, e.value as waiter, row_number() over (partition by e.value order by e.key) as nth
      from jsonb_each_text(p_waiters) e) w
    group by w.waiter, (w.nth - 1) / 200) n);
end
$$;

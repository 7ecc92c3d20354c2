-- Registers a client as the waiter of tasks that it did not submit: the process that ends one of them from
-- now on notifies it. Skips tasks that have ended, those with another waiter, and those that another
-- transaction has locked, which are not waited for: the client asks again.
-- Locks: tasks (skips).
-- p_args: {tasks: [uuid...], waiter}.
-- Returns: {told: [uuid...]}: tasks that are open when this commits, so that their ends are notified.
create or replace function tasker.register_waiter_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_waiter constant uuid := (p_args->>'waiter')::uuid;
  v_tasks uuid[];
  v_told uuid[];
begin
  perform tasker.require_read_committed();
  -- if lost in a crash of the server, the client polls
  perform set_config('synchronous_commit', 'off', true);
  select array_agg(q.task_uuid) into v_tasks from (
    select t.task_uuid from tasker.tasks t
    where t.task_uuid = any (array(select jsonb_array_elements_text(p_args->'tasks')::uuid))
      and not t.complete and coalesce(t.waiter, v_waiter) = v_waiter
    order by t.task_uuid for no key update skip locked) q;
  with told as (
    update tasker.tasks t set waiter = v_waiter where t.task_uuid = any (v_tasks) and t.waiter is null
  )
  select array_agg(u) into v_told from unnest(v_tasks) u;
  return jsonb_build_object('told', coalesce(to_jsonb(v_told), '[]'));
end
$$;

-- Notifies waiting clients of the ends of tasks: one notification for each 200 tasks of a client (a payload
-- is limited to 8,000 bytes). Must run in a transaction of its own *after* the commit of the ends: the
-- notified client reads the row, and a notification holds a lock of the whole server until its transaction is
-- on disk. The server drops a notification without a listener.
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
    from (select e.key as task, e.value as waiter,
      row_number() over (partition by e.value order by e.key) as nth
      from jsonb_each_text(p_waiters) e) w
    group by w.waiter, (w.nth - 1) / 200) n);
end
$$;

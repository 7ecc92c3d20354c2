-- False if no open task is older than the shortest limit, and none is of a template with limits of its own: then none
-- can be stale (tasker.stale_tasks), and that large query need not be planned. A task cannot rest for longer than it
-- exists; its last write counts as well, because a clock may have been set back.
create or replace function tasker.stale_candidates() returns boolean
language plpgsql stable as $$
declare
  v_shortest constant interval := (select least(g.waiting_for_dependencies_minutes, g.waiting_for_retry_minutes,
      g.steps_in_process_minutes, g.task_max_lifetime_minutes, g.checkpoint_stall_minutes) * interval '1 minute'
    from tasker.staleness_settings g);
  v_now constant timestamptz := tasker.now();
begin
  return exists (
    select from (select t.template_id, min(least(t.created_at, t.updated_at)) as since from tasker.tasks t
      where not t.complete group by t.template_id) o
    where o.since <= v_now - v_shortest
      or exists (select from tasker.templates m where m.template_id = o.template_id and m.lifecycle <> '{}')
      or exists (select from tasker.template_steps s
        where s.template_id = o.template_id and s.max_in_process_minutes is not null));
end
$$;
